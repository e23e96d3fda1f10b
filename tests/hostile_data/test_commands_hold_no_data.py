"""The command shows no value of the data either: neither where it refuses a file, nor where it meets a bug."""

import re
import subprocess
import sys

import pyarrow as pa
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.ingest import event_table
from armslength.ingest.sums import GroupSums, VoteSums
from hostile_data.calls import MARGINS, RECORD, STRINGS
from hostile_data.canaries import INTEGER, REAL, TEXT, traces
from hostile_data.events import in_files

_GROUPS = ("--group", "where", "--public-groups", "a")
PROTOCOLS = {"amounts": STRINGS, "votes": MARGINS, "records": RECORD}
_READ = {
    "amounts": ("--person", "who", "--item", "what", "--weight", "much"),
    "votes": ("--person", "who", "--item", "what", "--item-groups", "margins.csv"),
    "records": ("--person", "who"),
}
KINDS = pytest.mark.parametrize("kind", PROTOCOLS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("commands")
    for kind, protocol in PROTOCOLS.items():
        protocol.save(place / f"{kind}.json")
    (place / "margins.csv").write_text("item,group\na,A\nb,B\n", encoding="utf-8")
    return place


@pytest.fixture(autouse=True)
def in_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def reading(kind, *files):
    """The arguments that say what is read."""
    return (*files, *_READ[kind], "--protocol", f"{kind}.json")


def release(*files, kind="amounts", more=()):
    fixed = ("--no-ledger", "--overwrite", "-o", "out.parquet")
    return run("release", *reading(kind, *files), *_GROUPS, *fixed, *more)


def shown(done):
    """The output, without the line with the hash of the sketch file: one in 200 hashes has five digits of a canary by chance."""
    return re.sub("^SHA-256 [0-9a-f]{64}$", "", done.output, flags=re.MULTILINE)


@KINDS
def test_files_that_are_refused(kind, tmp_path):
    codes = set()
    # each kind of damage once: what stands in which column makes no difference here
    files = [(name, path) for name, path in in_files(tmp_path) if " for " not in name]
    for name, path in files:
        for more in ((), ("--dry-run",)) if "header" in name else ((),):
            done = release(path, kind=kind, more=more)
            assert not traces(shown(done)), (name, done.output)
            codes.add(done.exit_code)
    assert codes == {0, 2}
    assert not traces(shown(release(tmp_path, kind=kind)))


@KINDS
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_check_shows_no_person_and_no_item(kind, form, tmp_path, monkeypatch):
    monkeypatch.setattr("armslength.cli.check.is_terminal", lambda _: True)
    monkeypatch.setattr("armslength.cli.check.least_people", lambda _: 10)  # of the protocol alone, and slow
    codes = set()
    for name, path in in_files(tmp_path):
        # not by group: the names of groups are shown to the data holder
        done = run("check", *reading(kind, path), "--label", "a", "--format", form)
        assert not traces(shown(done)), (name, done.output)
        codes.add(done.exit_code)
    assert codes == {2, 7}  # one person is too few for any answer


@KINDS
def test_a_release_that_is_checked_shows_no_person_and_no_item(kind, events, monkeypatch):
    for place in ("check", "release"):
        monkeypatch.setattr(f"armslength.cli.{place}.is_terminal", lambda _: True)
    fixed = ("--label", "a", "--no-ledger", "--overwrite", "-o", "out.parquet", "--check")
    done = CliRunner().invoke(main, ["release", *map(str, reading(kind, events)), *fixed], input="y\n")
    assert done.exit_code == 0, done.output
    assert "1 person" in done.output
    assert not traces(shown(done))


def _broken(*_, **__):
    try:
        {}[TEXT]
    except KeyError as problem:
        raise RuntimeError(INTEGER, REAL, TEXT) from problem


@pytest.fixture
def events(folder):
    path = folder / "whole.csv"
    path.write_text(f"who,what,where,much\n{TEXT},b,a,1\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "broken"),
    [
        *((kind, (GroupSums, "add")) for kind in PROTOCOLS),
        ("votes", (VoteSums, "of")),
        ("votes", (event_table, "margin_cells")),
        ("records", (event_table, "margin_cells")),
    ],
)
def test_a_bug_shows_its_place_and_not_its_message(kind, broken, events, monkeypatch):
    done = release(events, kind=kind)
    assert done.exit_code == 0, done.output
    monkeypatch.setattr(*broken, _broken)
    done = release(events, kind=kind)
    assert done.exit_code == 1
    assert "armslength: internal error (RuntimeError)" in done.output
    assert "event_table.py" in done.output
    assert not traces(done.output)


@pytest.mark.parametrize("error", [RecursionError, UnicodeError, OSError, ExceptionGroup])
def test_every_kind_of_bug_is_caught(events, monkeypatch, error):
    def broken(*_):
        raise error(TEXT, [ValueError(INTEGER)]) if error is ExceptionGroup else error(TEXT)

    monkeypatch.setattr(GroupSums, "add", broken)
    done = release(events)
    assert done.exit_code == 1
    assert f"internal error ({error.__name__})" in done.output
    assert not traces(done.output)


@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_too_little_memory_is_no_bug_and_no_damage(events, monkeypatch, error):
    def broken(*_):
        raise error(TEXT)

    monkeypatch.setattr(GroupSums, "add", broken)
    done = release(events)
    assert done.exit_code == 2
    assert "memory" in done.output
    assert not traces(done.output)


def test_a_reader_that_goes_away_is_no_bug(events, monkeypatch):
    def broken(*_):
        raise BrokenPipeError(32, TEXT)

    monkeypatch.setattr(GroupSums, "add", broken)
    done = release(events)
    assert done.exit_code == 141
    assert done.output == ""


def test_a_refusal_of_ours_keeps_its_words_and_code(events):
    done = release(events, more=("--label", "north"))
    assert done.exit_code == 2
    assert done.output.startswith("armslength: --label cannot be combined with --group")


def test_a_bug_in_a_process_of_its_own(folder, events):
    code = (
        "import armslength.ingest.sums as partial\n"
        "from armslength.cli.main import main\n"
        f"def broken(*_): raise RuntimeError({TEXT!r})\n"
        "partial.GroupSums.add = broken\n"
        "main()\n"
    )
    arguments = ["release", *reading("amounts", events), *_GROUPS, "--no-ledger"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments), "--overwrite", "-o", str(folder / "out.parquet")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("internal error (RuntimeError)") == 1
    assert not traces(done.stderr + done.stdout)


def test_a_name_that_breaks_the_line_does_not(tmp_path):
    with pytest.raises(FileNotFoundError) as refused:
        al.release(
            STRINGS,
            tmp_path / "two\nlines\u2028more.csv",
            ledger=al.NO_LEDGER,
            person="who",
            item="what",
            label="north",
        )
    assert len(str(refused.value).splitlines()) == 1
    assert r"two\nlines\u2028more.csv" in str(refused.value)
