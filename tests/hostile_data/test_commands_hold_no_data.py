"""The command shows no value of the data either: neither where it refuses a file, nor where it meets a bug."""

import subprocess
import sys

import pyarrow as pa
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.ingest.sums import GroupSums
from hostile_data.calls import STRINGS
from hostile_data.canaries import INTEGER, REAL, TEXT, traces
from hostile_data.events import in_files

_COLUMNS = (
    "--person",
    "who",
    "--item",
    "what",
    "--group",
    "where",
    "--public-groups",
    "a",
    "--weight",
    "much",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("commands")
    STRINGS.save(place / "protocol.json")
    return place


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def release(folder, *files, more=()):
    fixed = (
        "--protocol",
        folder / "protocol.json",
        "--no-ledger",
        "--overwrite",
        "-o",
        folder / "out.parquet",
    )
    return run("release", *files, *_COLUMNS, *fixed, *more)


def test_files_that_are_refused(folder):
    (folder / "events").mkdir()
    codes = set()
    # each kind of damage once: what stands in which column makes no difference here
    files = [(name, path) for name, path in in_files(folder / "events") if " for " not in name]
    for name, path in files:
        for more in ((), ("--dry-run",)) if "header" in name else ((),):
            done = release(folder, path, more=more)
            assert not traces(done.output), (name, done.output)
            codes.add(done.exit_code)
    assert codes == {0, 2}
    assert not traces(release(folder, folder / "events").output)


@pytest.mark.parametrize("groups", [("--label", "a"), ("--group", "where", "--public-groups", "a")])
def test_a_contribution_and_a_check_show_no_person_and_no_item(tmp_path, folder, groups):
    fixed = ("--person", "who", "--item", "what", "--format", "json")
    check = ("--protocol", folder / "protocol.json")
    contribution = ("--epsilon", 1, "--unit", "one person", "--no-ledger")
    codes = set()
    for name, path in in_files(tmp_path):
        if " for " in name and " for what" not in name:
            continue
        done = run("contribution", path, *fixed, *groups, *contribution)
        assert not traces(done.output), (name, done.output)
        codes.add(done.exit_code)
        if "--label" in groups:  # the names of groups are shown to the data holder
            done = run("check", path, *fixed, *groups, *check)
            assert not traces(done.output), (name, done.output)
            codes.add(done.exit_code)
    assert codes <= {0, 2, 3, 7}
    assert 2 in codes


def _broken(*_):
    try:
        {}[TEXT]
    except KeyError as problem:
        raise RuntimeError(INTEGER, REAL, TEXT) from problem


@pytest.fixture
def events(folder):
    path = folder / "whole.csv"
    path.write_text(f"who,what,where,much\n{TEXT},b,a,1\n", encoding="utf-8")
    return path


def test_a_bug_shows_its_place_and_not_its_message(folder, events, monkeypatch):
    assert release(folder, events).exit_code == 0
    monkeypatch.setattr(GroupSums, "add", _broken)
    done = release(folder, events)
    assert done.exit_code == 1
    assert "armslength: internal error (RuntimeError)" in done.output
    assert "event_table.py" in done.output
    assert not traces(done.output)


@pytest.mark.parametrize("error", [RecursionError, UnicodeError, OSError, ExceptionGroup])
def test_every_kind_of_bug_is_caught(folder, events, monkeypatch, error):
    def broken(*_):
        raise error(TEXT, [ValueError(INTEGER)]) if error is ExceptionGroup else error(TEXT)

    monkeypatch.setattr(GroupSums, "add", broken)
    done = release(folder, events)
    assert done.exit_code == 1
    assert f"internal error ({error.__name__})" in done.output
    assert not traces(done.output)


@pytest.mark.parametrize("error", [MemoryError, pa.ArrowMemoryError])
def test_too_little_memory_is_no_bug_and_no_damage(folder, events, monkeypatch, error):
    def broken(*_):
        raise error(TEXT)

    monkeypatch.setattr(GroupSums, "add", broken)
    done = release(folder, events)
    assert done.exit_code == 2
    assert "memory" in done.output
    assert not traces(done.output)


def test_a_reader_that_goes_away_is_no_bug(folder, events, monkeypatch):
    def broken(*_):
        raise BrokenPipeError(32, TEXT)

    monkeypatch.setattr(GroupSums, "add", broken)
    done = release(folder, events)
    assert done.exit_code == 141
    assert done.output == ""


def test_a_refusal_of_ours_keeps_its_words_and_code(folder, events):
    done = release(folder, events, more=("--label", "north"))
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
    arguments = ["release", events, *_COLUMNS, "--protocol", folder / "protocol.json", "--no-ledger"]
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
        STRINGS.release_table(
            tmp_path / "two\nlines\u2028more.csv",
            ledger=al.NO_LEDGER,
            person="who",
            item="what",
            label="north",
        )
    assert len(str(refused.value).splitlines()) == 1
    assert r"two\nlines\u2028more.csv" in str(refused.value)
