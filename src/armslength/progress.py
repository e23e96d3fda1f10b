"""Progress on long work, with its rate, for whoever sits at a terminal; nothing where nobody does."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """What long work calls whenever some of it is done."""

    def __call__(self, done: int, /) -> object:
        """This much more is done."""


@contextmanager
def progress(what: str, total: int | None, unit: str, *, shown: bool) -> Iterator[Advance]:
    """A bar on standard error for the work inside the block; the value is called with each amount that is done.

    Args:
        what: Which work it is.
        total: How much there is of it; None if nobody knows.
        unit: What is counted, such as "rows".
        shown: Whether a bar is wanted; even then there is none unless standard error is a terminal.
    """
    if not shown:
        yield lambda _: None
        return
    from tqdm import tqdm  # noqa: PLC0415  # most calls show none

    # disable=None: quiet where standard error is not a terminal
    with tqdm(
        total=total, desc=what, unit=f" {unit}", unit_scale=True, disable=None, leave=False, delay=0.5
    ) as bar:
        yield bar.update
