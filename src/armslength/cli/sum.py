"""`armslength sum`: add sketches. Two wards make one hospital, twelve months a year."""

import click

import armslength as al
from armslength.cli.options import FILE, OVERWRITE, check_new_file, sketch_files, work_limit
from armslength.errors import plural, printable
from armslength.sketches.sketch_file import list_files
from armslength.sketches.sketches import sum_rows


@click.command(
    epilog="""\b
Examples:
  armslength sum wards.parquet --label hospital -o hospital.parquet          all rows make one
  armslength sum january.parquet february.parquet --by-label -o both.parquet rows of the same name make one
"""
)
@sketch_files
@click.option("--label", help="The name of the one row that is the sum of all rows.")
@click.option(
    "--by-label",
    is_flag=True,
    help="Or: add rows that have the same label, one of each file, and keep the labels.",
)
@OVERWRITE
@click.option("-o", "--output", required=True, type=FILE, help="The sketch file to write.")
def sum(  # noqa: A001  # the verb's name
    files: tuple[str, ...], label: str | None, by_label: bool, overwrite: bool, output: str
) -> None:
    """Add sketches: the sum is the sketch of the added data, with the noise of all of them.

    It costs no privacy. A person in several rows counts in each, and spent ε in each.
    """
    if (label is None) != by_label:
        raise click.UsageError("either --label or --by-label must be given, and not both")

    paths = [path for name in files for path in list_files(name)]
    check_new_file(output, overwrite=overwrite, read=map(str, paths))
    parts = [al.load(path, **work_limit()) for path in paths]
    ids = [noise for part in parts for noise in part.noises.ids.tolist()]
    if len(set(ids)) != len(ids):  # its data and its noise would count twice
        raise click.UsageError("each release must be added once, got one that is in several rows or files")
    added = _by_label(parts) if label is None else sum_rows(al.concat(parts), label)
    added.save(output)
    rows = plural(len(added), "row")
    click.echo(f"{rows} written to {output}, with the noise of all the rows that were added")
    if any(added.in_clear):
        named = ", ".join(label for label, clear in zip(added.labels, added.in_clear, strict=True) if clear)
        click.echo(
            f"NOT PRIVATE: data in the clear went into {printable(named)}; the file must not be published"
        )


def _by_label(parts: "list[al.Sketches]") -> "al.Sketches":
    labels = parts[0].labels
    for part in parts:
        if sorted(part.labels) != sorted(labels) or len(set(part.labels)) != len(part):
            raise al.ParameterError(
                "labels must be the same in every file, each once, got others; use --label"
            )
    return al.concat([sum_rows(al.concat([part[label] for part in parts]), label) for label in labels])
