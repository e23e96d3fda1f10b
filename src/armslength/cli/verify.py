"""`armslength verify`: recheck sketch files that you received."""

import textwrap

import click

import armslength as al
from armslength.cli.exit_codes import INCOMPATIBLE
from armslength.cli.options import EXISTING_FILE, choice, sketch_files, work_limit
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
@click.option("--protocol", "protocol_file", type=EXISTING_FILE, help="The protocol that was agreed on.")
@click.option(
    "--ledger",
    type=EXISTING_FILE,
    help="The ledger of the party that released the files: it must have a line for each.",
)
@choice("--format", "form", values=["table", "json"])
@click.pass_context
def verify(
    ctx: click.Context, files: tuple[str, ...], protocol_file: str | None, ledger: str | None, form: str
) -> None:
    """Recheck sketch files that you received: was anything edited, and is the noise enough for the guarantee?

    It recomputes the digests of all rows, columns of the matrix, sensitivity, noise scale, guarantee and release card, and flags
    rows whose numbers are implausible for the declared noise. No file can prove that the noise was really added.

    Exit code 5: something failed.
    """
    protocol = None if protocol_file is None else al.Protocol.load(protocol_file, **work_limit())
    paths = [path for name in files for path in list_files(name)]
    results = [al.verify(path, protocol=protocol, ledger=ledger, **work_limit()) for path in paths]
    if form == "json":
        click.echo(as_json([result.document() for result in results]))
    else:
        for result in results:
            click.echo(result.path)
            for check in result.checks:
                state = check.state.upper() if check.state == FAILS else check.state
                first = f"  {state:<12} {check.subject + ':':<12} "
                click.echo(
                    textwrap.fill(check.words, TEXT_WIDTH, initial_indent=first, subsequent_indent=" " * 28)
                )
    failing = sum(not result.holds for result in results)
    if failing:
        click.echo(f"armslength: {failing} of {len(results)} files failed verification", err=True)
        ctx.exit(INCOMPATIBLE)
