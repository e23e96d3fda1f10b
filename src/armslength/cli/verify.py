"""`armslength verify`: recheck sketch files that you received."""

import textwrap

import click

import armslength as al
from armslength.cli.exit_codes import INCOMPATIBLE
from armslength.cli.options import LocalPath, sketch_files, work_limit
from armslength.cli.output import TEXT_WIDTH, as_json
from armslength.sketches.sketch_file import list_files
from armslength.sketches.verify import FAILS


@click.command(
    epilog="""\b
Examples:
  armslength verify sketches.parquet
  armslength verify north.parquet south.parquet --protocol protocol.json     as it was agreed on?
  armslength verify sketches.parquet --ledger ledger.sqlite                  and was it charged?
"""
)
@sketch_files
@click.option(
    "--protocol",
    "agreed",
    type=LocalPath(exists=True, dir_okay=False),
    help="The protocol that was agreed on.",
)
@click.option(
    "--ledger",
    type=LocalPath(exists=True, dir_okay=False),
    help="The ledger of the party that released the files: it must have a line for each.",
)
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True)
@click.pass_context
def verify(
    ctx: click.Context, files: tuple[str, ...], agreed: str | None, ledger: str | None, form: str
) -> None:
    """Recheck sketch files that you received: was anything edited, and is the noise enough for the guarantee?

    It recomputes the digests of all rows, columns of the matrix, sensitivity, noise scale, guarantee and release card, and flags
    rows whose numbers are implausible for the declared noise. No file can prove that the noise was really added.

    Exit code 5: something failed.
    """
    protocol = None if agreed is None else al.Protocol.load(agreed, **work_limit())
    done = [
        al.verify(path, protocol=protocol, ledger=ledger, **work_limit())
        for name in files
        for path in list_files(name)
    ]
    if form == "json":
        click.echo(as_json([each.document() for each in done]))
    else:
        for each in done:
            click.echo(each.path)
            for check in each.checks:
                state = check.state.upper() if check.state == FAILS else check.state
                first = f"  {state:<12} {check.subject + ':':<12} "
                click.echo(
                    textwrap.fill(check.words, TEXT_WIDTH, initial_indent=first, subsequent_indent=" " * 28)
                )
    failing = sum(not each.holds for each in done)
    if failing:
        click.echo(f"armslength: {failing} of {len(done)} files failed verification", err=True)
        ctx.exit(INCOMPATIBLE)
