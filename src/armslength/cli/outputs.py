"""Files that a verb writes: never over another one by mistake."""

from pathlib import Path

import click

OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace the output file if it is there.")


def check_new_file(output: str | None, *, overwrite: bool) -> None:
    """Refuses to write over a file: a protocol or a release that is lost cannot be had again."""
    if output is not None and Path(output).exists() and not overwrite:
        raise click.UsageError(
            f"the output must be a new file, got {output}; name another, or pass --overwrite"
        )
