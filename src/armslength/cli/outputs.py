"""Files that a verb writes: never over another one by mistake."""

from collections.abc import Iterable
from pathlib import Path

import click

OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace the output file if it is there.")


def check_new_file(output: str | None, *, overwrite: bool, read: Iterable[str] = ()) -> None:
    """Refuses to write over a file: a protocol or a release that is lost cannot be had again.

    Args:
        output: What is to be written, if anything.
        overwrite: Whether a file may be replaced.
        read: Files that are read or charged, and must never be replaced.
    """
    if output is not None and any(Path(output).resolve() == Path(name).resolve() for name in read):
        raise click.UsageError(f"the output must be another file than those that are used, got {output}")
    if output is not None and Path(output).exists() and not overwrite:
        raise click.UsageError(
            f"the output must be a new file, got {output}; name another, or pass --overwrite"
        )
