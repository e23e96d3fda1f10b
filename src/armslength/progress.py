"""A progress bar for long work, if standard error is a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int], object]  # long work calls it with each amount that is done


@contextmanager
def progress(title: str, total: int | None, unit: str, *, show: bool) -> Iterator[Advance]:
    """A bar on standard error for the work inside the block. The block calls the value with each amount of work done.

    Args:
        title: The name of the work.
        total: How much there is in all; None if that is not known.
        unit: What is counted, such as "rows".
        show: Whether to show a bar; there is none in any case unless standard error is a terminal.
    """
    if not show:
        yield lambda _: None
        return
    from tqdm import tqdm  # noqa: PLC0415  # most calls need none

    # disable=None: quiet where standard error is not a terminal
    with tqdm(
        total=total, desc=title, unit=f" {unit}", unit_scale=True, disable=None, leave=False, delay=0.5
    ) as bar:
        yield bar.update
