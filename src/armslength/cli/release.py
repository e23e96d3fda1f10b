"""`armslength release`: one private sketch for each group of an event table. It spends privacy."""

import hashlib
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from armslength.cli.check import check_text, checked_table, table_job, table_options
from armslength.cli.exit_codes import ELSEWHERE, NEEDS_A_LOOK, endings_ignored
from armslength.cli.ledger import charge_text, chosen_ledger, ledger_options
from armslength.cli.options import FILE, OVERWRITE, check_new_file, flag, option
from armslength.cli.output import echo_notes, is_terminal, paragraph
from armslength.errors import ArmslengthError, ParameterError, plural
from armslength.files import check_can_write
from armslength.ingest.event_table import TableJob
from armslength.ledger.ledger import Account, open_account
from armslength.privacy.exact_numbers import decimal_text, weakness
from armslength.releasing.release import preview_events, release_events
from armslength.sketches.card import protection_in_words

if TYPE_CHECKING:
    import armslength as al

_LOST = "ε was charged, and nothing was written: releasing again, with --repeat, spends once more"


@click.command(
    epilog="""\b
Examples:
  armslength release visits.parquet --protocol protocol.json --person patient --item code --label north --new-ledger
  armslength release visits.parquet --protocol protocol.json --person patient --item code \\
             --group hospital --public-groups @hospitals.txt
  armslength release 'visits/**/*.parquet' ...             a pattern; folders named hospital=north are a column, too
  armslength release visits.txt --delimiter ';' --encoding latin-1 ...
  armslength release sqlite:///visits.db --table visits ...
  armslength release postgresql://me@host/clinic --query "SELECT patient, code FROM visits WHERE year = 2026" ...
  armslength release s3://bucket/visits ...                also gs://, abfs://, hdfs://
  zcat visits.*.gz | armslength release - --input-format jsonl ...
  armslength release patients.parquet --protocol protocol.json --person id --label north        one row per person
  armslength release visits.parquet ... --dry-run          say what would be spent; reads no event

Which groups exist is public input: every group of --public-groups gets a row, also without events, and events of other
groups are left out. Events without a person are left out. Each person has one vote, in one group; or, where amounts are
added up, counts at most the protocol's contribution, over all groups together. The ledger is charged before anything is written; the same population and labels twice are
refused, unless --period says that the data are about another time. The first release makes its ledger with --new-ledger, unless `armslength ledger budget` has made
it. Exit code 4 says that the budget does not allow it; 6 that the release could not be written to --output, and was saved
in the temporary folder, which the message names.
"""
)
@table_options
@ledger_options
@OVERWRITE
@option(
    "--check/--no-check checked", "Run `armslength check` first.  [default: ask, in a terminal]", default=None
)
@flag("--dry-run", "Show what would be released and spent; reads no event, spends nothing.")
@option(
    "-o --output",
    "The sketch file to write.  [default: LABEL.parquet, or sketches.parquet for groups]",
    type=FILE,
)
def release(files: tuple[str, ...], population: str, output: str | None, **options: Any) -> None:
    """Release one private sketch for each group of an event table.

    SOURCE is files, folders or patterns (.parquet, .arrow, .csv, .tsv, .txt, .json, .jsonl; text also as .gz, .bz2 or .zst), here or in
    an object store, the standard input (-), or one database (sqlite:///, duckdb:///, postgresql://) with --table or --query.
    It needs a column for the person, one for the item, and one for the group or a --label for all. A column of weights
    is optional. With a protocol that has records, columns of each row become items: leave out --item. Everything is read and checked before any privacy is spent.
    """
    read = [*files, options["ledger"], options["protocol_file"]]
    if output is None:
        output = f"{options['label'] or 'sketches'}.parquet"
    check_new_file(output, overwrite=options["overwrite"], read=read)
    check_can_write(output)
    is_untold = options["dry_run"] and not options["no_ledger"] and _has_no_ledger(options)
    if is_untold:
        options |= {"no_ledger": True, "new_ledger": False}
    ledger = chosen_ledger(options)
    account = open_account(
        ledger, population, period=options["period"], file=Path(output).name, repeat=options["repeat"]
    )
    job = table_job(files, options)
    if options["dry_run"]:
        preview_events(job, account)
        message = "would be released; nothing was read but the schema, nothing was spent"
        click.echo(_summary(job.protocol, job, message))
        told = "no ledger was asked: there is none yet"
        click.echo(told if is_untold else charge_text(account, "would be charged"))
        return
    _offer_check(job, account, is_asked=options["checked"])
    path = _release(job, account, output)
    if path != output:  # a script that goes on with --output must notice that it is not there
        click.get_current_context().exit(ELSEWHERE)


def _has_no_ledger(options: dict[str, Any]) -> bool:
    """Whether a dry run cannot look into a ledger: there is none yet, and none was named or asked for."""
    is_default = click.get_current_context().get_parameter_source("ledger") is ParameterSource.DEFAULT
    return is_default and not options["new_ledger"] and not Path(options["ledger"]).exists()


def _offer_check(job: TableJob, account: Account, *, is_asked: bool | None) -> None:
    """Check the table if the data holder asks for it, before anything is spent; ends here if they do not go on."""
    in_terminal = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    if is_asked and not in_terminal:
        raise click.UsageError(
            "--check is private and needs a terminal; leave it out, or run armslength check --format json first"
        )
    if is_asked is False or not in_terminal:
        return
    preview_events(job, account)
    if is_asked or click.confirm(
        "Check the table first? Only you see the result, and nothing is spent", default=True
    ):
        click.echo(f"\n{check_text(checked_table(job), job)}\n")
        if not click.confirm("Release now, and spend the budget?"):
            echo_notes("nothing was released, and nothing was spent")
            click.get_current_context().exit(NEEDS_A_LOOK)


def _release(job: TableJob, account: Account, output: str) -> str:
    """Release and print what was done; returns the file. Every error after the charge says what became of the release."""
    sketches: al.Sketches | None = None
    path = output

    def is_lost() -> bool:
        return sketches is None and account.line is not None

    try:
        sketches = release_events(job, account, show_progress=True)
        path = _save(sketches, output)
        click.echo(_summary(job.protocol, job, f"released to {path}"))
        with Path(path).open("rb") as file:
            click.echo(f"SHA-256 {hashlib.file_digest(file, 'sha256').hexdigest()}")
        click.echo(charge_text(account, "charged"))
    except KeyboardInterrupt:
        with endings_ignored():  # a second one must not take what the first is saving
            message = _interrupted(sketches, output, charged=is_lost())
        raise KeyboardInterrupt(message) from None
    except ArmslengthError as problem:
        if is_lost():
            raise type(problem)(f"{problem}; {_LOST}", *problem.arguments) from None
        raise
    except OSError as problem:  # of the standard output
        if sketches is None:
            raise
        raise OSError(problem.errno, f"{problem.strerror}; the release was saved as {path}") from None
    except Exception:  # a bug, or no memory left: its own message is left out
        if is_lost():
            echo_notes(_LOST)
        raise
    return path


def _interrupted(sketches: "al.Sketches | None", output: str, *, charged: bool) -> str:
    """The message after an interruption; saves the release first if there is one."""
    if sketches is not None:
        return f"interrupted when all was done; the release was saved as {_save(sketches, output)}"
    return f"interrupted; {_LOST if charged else 'nothing was charged, and nothing was written'}"


def _save(sketches: "al.Sketches", output: str) -> str:
    """Save the sketches and return where. The budget is spent, so a second place, the temporary folder, is tried."""
    try:
        sketches.save(output)
    except Exception as problem:  # noqa: BLE001  # whatever it is, the release is lost unless it is written elsewhere
        error = problem
        if not isinstance(error, ArmslengthError):
            error = ParameterError(f"cannot write {output}: {type(problem).__name__}")
        rescued = str(Path(tempfile.gettempdir()) / f"rescued-sketches-{secrets.token_hex(8)}.parquet")
        try:
            sketches.save(rescued)
        except Exception:  # noqa: BLE001  # the same
            raise type(error)(f"{error}; {_LOST}", *error.arguments) from None
        echo_notes(f"{error}; the release was saved as {rescued}: move it where it belongs")
        return rescued
    return output


def _summary(protocol: "al.Protocol", job: TableJob, state: str) -> str:
    """What was released, and who is protected, in words."""
    count = len(job.groups.labels)
    delta = f", δ = {decimal_text(protocol.released_delta)}" if protocol.released_delta else ""
    rows = f"{plural(count, 'sketch', 'sketches')} of {plural(protocol.transform.sketch_dim, 'number')}"
    weak = weakness(protocol.epsilon, protocol.released_delta)
    lines = [
        paragraph(protection_in_words(protocol, "events")),
        f"{rows} {state}",
        f"ε = {decimal_text(protocol.epsilon)}{delta}{' for all of them together' if count > 1 else ''}",
    ]
    return "\n".join([*lines, f"WARNING: {weak}"] if weak else lines)
