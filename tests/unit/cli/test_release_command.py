"""`armslength release`, `protocol` and `show`: what users type, what they read, and what it costs."""

import hashlib
import json
import os
import sqlite3
import tempfile
from contextlib import closing

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest.parquet_texts import ParquetTexts
from unit.cli.commands import run

EVENTS = pa.table(
    {
        "patient": ["p1", "p1", "p2", "p3", None],
        "code": ["flu", "cold", "flu", "cough", "flu"],
        "hospital": ["north", "north", "south", "elsewhere", "north"],
        "cost": [1, -2, 3, 1, 1],
    }
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(EVENTS, "visits.parquet")
    (tmp_path / "hospitals.txt").write_text("north\nsouth\n\neast\n", encoding="utf-8")
    made = run(*NEW, "-o", "protocol.json")
    assert made.exit_code == 0, made.output
    ledger = al.Ledger("ledger.sqlite", create=True)
    ledger.set_budget("staff", 1, unit="one nurse")
    ledger.set_budget("visits-2026", None, unit="one patient")
    return tmp_path


NEW = ("protocol", "new", "--epsilon", 1, "--sketch-dim", 16)
NEW = (*NEW, "--seed", "trial", "--unit", "one patient", "--total-share", "0.1")
RELEASE = ("release", "visits.parquet", "--person", "patient", "--item", "code")
RELEASE = (*RELEASE, "--protocol", "protocol.json", "--population", "visits-2026", "-o", "sketches.parquet")
GROUPS = ("--group", "hospital", "--public-groups", "@hospitals.txt")


def test_a_release_from_a_file_with_groups(folder):
    done = run(*RELEASE, *GROUPS)
    assert done.exit_code == 0, done.output
    assert "Each person has one vote, split evenly over all different items" in " ".join(done.output.split())
    assert "ε = 1 for all of them together" in done.output
    sketches = al.load("sketches.parquet")
    assert sketches.labels == ("north", "south", "east")
    assert sketches.totals is not None
    (entry,) = al.Ledger("ledger.sqlite").entries()
    assert (entry.population, entry.epsilon, entry.totals_epsilon) == ("visits-2026", "1", "0.1")
    assert {path.name for path in folder.iterdir()} == {
        "visits.parquet",
        "hospitals.txt",
        "protocol.json",
        "sketches.parquet",
        "ledger.sqlite",
    }


def test_a_dry_run_reads_no_event_and_spends_nothing(folder, monkeypatch):
    before = sorted(path.name for path in folder.iterdir())
    monkeypatch.setattr("armslength.ingest.parquet_texts.ParquetTexts.pieces", None)  # to read would fail
    done = run(*RELEASE, *GROUPS, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "3 sketches of 16 numbers would be released" in done.output
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_dry_run_needs_no_ledger_and_no_population(folder):
    at = RELEASE.index("--population")
    nobody = [*RELEASE[:at], *RELEASE[at + 2 :]]
    for flags in ([], ["--dry-run"]):  # a ledger with several populations must be told which one to charge
        refused = run(*nobody, *GROUPS, *flags)
        assert refused.exit_code == 2
        assert "--population" in refused.stderr
    (folder / "ledger.sqlite").unlink()
    before = sorted(path.name for path in folder.iterdir())
    for command in (RELEASE, nobody, [*RELEASE, "--new-ledger"], [*nobody, "--new-ledger"]):
        done = run(*command, *GROUPS, "--dry-run")
        assert done.exit_code == 0, done.output
        assert "3 sketches of 16 numbers would be released" in done.output
    assert sorted(path.name for path in folder.iterdir()) == before
    assert run(*nobody, *GROUPS).exit_code == 2  # a release needs a ledger


def test_without_a_population_everybody_is_one(folder):
    (folder / "ledger.sqlite").unlink()
    at = RELEASE.index("--population")
    nobody = [*RELEASE[:at], *RELEASE[at + 2 :]]
    assert run(*nobody, *GROUPS, "--new-ledger").exit_code == 0
    again = run(*nobody, *GROUPS, "--overwrite")
    assert again.exit_code != 0  # the same people and labels
    assert run(*nobody, *GROUPS, "--overwrite", "--period", "2027").exit_code == 0
    assert [entry.population for entry in al.Ledger("ledger.sqlite").entries()] == ["everybody"] * 2


@pytest.mark.usefixtures("folder")
def test_a_dry_run_says_no_where_the_release_would():
    assert run(*RELEASE, *GROUPS, "--no-ledger", "--dry-run").exit_code == 0
    assert run(*RELEASE, *GROUPS, "--dry-run", "--item", "nothing").exit_code == 2
    run("ledger", "budget", "--population", "visits-2026", "--epsilon", "0.5", "--unit", "one patient")
    refused = run(*RELEASE, *GROUPS, "--dry-run")
    assert refused.exit_code == 4
    assert "0.5" in refused.output


def test_a_ledger_must_exist_or_be_asked_for_before_anything_is_read(folder, monkeypatch):
    (folder / "ledger.sqlite").unlink()
    before = sorted(path.name for path in folder.iterdir())
    with monkeypatch.context() as unread:
        unread.setattr("armslength.ingest.parquet_texts.ParquetTexts.pieces", None)
        for flags in (
            [],
            ["--ledger", "other.sqlite"],
            ["--ledger", "other.sqlite", "--dry-run"],
            ["--new-ledger", "--no-ledger"],
        ):
            refused = run(*RELEASE, *GROUPS, *flags)
            assert refused.exit_code == 2, refused.output
            assert "--new-ledger" in refused.stderr
        told = run(*RELEASE, *GROUPS, "--new-ledger", "--dry-run")
        assert told.exit_code == 0, told.output
    refused = run(*RELEASE, *GROUPS, "--new-ledger", "--item", "nothing")
    assert refused.exit_code == 2
    assert sorted(path.name for path in folder.iterdir()) == before
    assert run(*RELEASE, *GROUPS, "--new-ledger").exit_code == 0
    assert len(al.Ledger("ledger.sqlite").entries()) == 1
    again = run(*RELEASE, *GROUPS, "--new-ledger", "--overwrite", "--repeat")
    assert again.exit_code == 2
    assert len(al.Ledger("ledger.sqlite").entries()) == 1


def test_the_same_command_from_another_folder_does_not_release_again(folder, monkeypatch):
    assert run(*RELEASE, *GROUPS).exit_code == 0
    (folder / "other").mkdir()
    monkeypatch.chdir(folder / "other")
    for name in ("visits.parquet", "protocol.json", "hospitals.txt"):
        (folder / "other" / name).symlink_to(folder / name)
    before = sorted(path.name for path in (folder / "other").iterdir())
    assert run(*RELEASE, *GROUPS).exit_code == 2
    assert sorted(path.name for path in (folder / "other").iterdir()) == before


def test_a_ledger_that_vanishes_while_events_are_read_is_noticed(folder, monkeypatch):
    pieces = ParquetTexts.pieces

    def removed(*arguments, **known):
        (folder / "ledger.sqlite").unlink(missing_ok=True)
        return pieces(*arguments, **known)

    monkeypatch.setattr("armslength.ingest.parquet_texts.ParquetTexts.pieces", removed)
    done = run(*RELEASE, *GROUPS)
    assert done.exit_code == 2
    assert "is gone" in done.stderr
    assert not (folder / "sketches.parquet").exists()
    assert not (folder / "ledger.sqlite").exists()


@pytest.mark.usefixtures("folder")
def test_the_same_labels_twice_are_refused_unless_asked_for():
    assert run(*RELEASE, *GROUPS).exit_code == 0
    again = run(*RELEASE, *GROUPS, "--overwrite")
    assert again.exit_code == 4
    assert "--repeat" in again.output
    assert run(*RELEASE, *GROUPS, "--overwrite", "--repeat").exit_code == 0
    assert len(al.Ledger("ledger.sqlite").entries()) == 2


def test_budget_is_asked_before_any_event_is_read(folder, monkeypatch):
    run("ledger", "budget", "--population", "visits-2026", "--epsilon", "0.5", "--unit", "one patient")
    monkeypatch.setattr("armslength.ingest.parquet_texts.ParquetTexts.pieces", None)
    assert run(*RELEASE, *GROUPS).exit_code == 4
    assert not (folder / "sketches.parquet").exists()


@pytest.mark.parametrize(
    ("changed", "code", "says"),
    [
        (("--person", "nobody"), 2, "its columns are"),
        (("-o", "hospitals.txt"), 2, "--overwrite"),
        (("--public-groups", "a,a"), 2, "labels must differ"),
        (("--protocol", "hospitals.txt"), 5, "a protocol (hospitals.txt) is not"),
        (("--weight", "code"), 2, "must be different columns"),
    ],
)
def test_bad_input_gets_one_line_a_code_and_costs_nothing(changed, code, says, folder):
    before = sorted(path.name for path in folder.iterdir())
    done = run(*RELEASE, *GROUPS, *changed)
    assert done.exit_code == code, done.output
    assert says in done.output
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    "output", ["ledger.sqlite", "protocol.json", "visits.parquet", "./x/../ledger.sqlite"]
)
def test_what_is_used_is_never_written_over(output, folder):
    (folder / "x").mkdir()
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run(*RELEASE, *GROUPS, "--overwrite", "-o", output)
    assert done.exit_code == 2
    assert output in done.output
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_release_that_cannot_be_written_is_rescued(folder, monkeypatch):
    # the budget is spent by then; a full disk is played by a rename that fails once
    rescue = folder / "temporary"
    rescue.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rescue))
    replace, calls = os.replace, []

    def full(source, target):
        calls.append(os.fspath(target))
        if calls[-1] == "sketches.parquet":  # the cache of kernels renames files, too
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr("armslength.files.os.replace", full)
    done = run(*RELEASE, *GROUPS)
    assert done.exit_code == 6, done.output
    (saved,) = rescue.iterdir()
    assert str(saved) in done.output
    assert "No space left" in done.output
    assert al.load(saved).labels == ("north", "south", "east")
    assert not (folder / "sketches.parquet").exists()


def test_a_release_that_can_be_written_nowhere_says_that_it_was_charged(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("armslength.files.os.replace", full)
    done = run(*RELEASE, *GROUPS)
    assert done.exit_code == 2
    assert "ε was charged, and nothing was written" in done.output
    assert len(al.Ledger(folder / "ledger.sqlite").entries()) == 1
    assert not list(folder.glob("*.part"))


def test_a_csv_without_a_header_does_not_show_its_first_line(folder):
    (folder / "bare.csv").write_text("zq-secret-zq,flu,north\n", encoding="utf-8")
    done = run(*RELEASE, *GROUPS, "bare.csv")
    assert done.exit_code == 2
    assert "none of its 3 columns has this name; a text file needs a header line" in done.output
    assert "zq-secret-zq" not in done.output


def test_what_is_left_of_a_budget_is_printed(folder):
    assert "budget no limit" in run(*RELEASE, *GROUPS, "--dry-run").output
    assert (
        "no budget is set"
        in run(*RELEASE, *GROUPS, "--dry-run", "--ledger", folder / "new.sqlite", "--new-ledger").output
    )
    run("ledger", "budget", "--population", "visits-2026", "--epsilon", 3, "--unit", "one patient")
    assert "left now: 3" in run(*RELEASE, *GROUPS, "--dry-run").output
    assert "left now: 2" in run(*RELEASE, *GROUPS).output


@pytest.mark.parametrize("population", ["visits-2027", "Visits-2026", "visits- 2026"])
def test_a_population_without_a_budget_where_others_have_one_is_refused(folder, population):
    lines = al.Ledger("ledger.sqlite").entries()
    refused = run(*RELEASE, *GROUPS, "--population", population)
    assert refused.exit_code == 4
    assert not (folder / "sketches.parquet").exists()
    assert al.Ledger("ledger.sqlite").entries() == lines
    assert (
        run(
            "ledger", "budget", "--population", "visits-2027", "--unit", "one patient", "--no-limit"
        ).exit_code
        == 0
    )
    assert (run(*RELEASE, *GROUPS, "--population", population).exit_code == 0) == (
        population == "visits-2027"
    )


def test_a_file_and_its_line_know_each_other(folder):
    done = run(*RELEASE, *GROUPS, "--period", "2026-11")
    assert done.exit_code == 0, done.output
    digest = hashlib.sha256((folder / "sketches.parquet").read_bytes()).hexdigest()
    assert digest in done.output
    assert "line 1" in done.output
    (entry,) = al.Ledger("ledger.sqlite").entries()
    assert (entry.file, entry.labels, entry.period) == (
        "sketches.parquet",
        ("north", "south", "east"),
        "2026-11",
    )
    uncharged = ("--no-ledger", "--population", "", "-o", "other.parquet")
    assert run(*RELEASE, *GROUPS, *uncharged).exit_code == 0
    for file, words, code in (
        ("sketches.parquet", "charged in line 1", 0),
        ("other.parquet", "not in this ledger", 5),
    ):
        verified = run("verify", file, "--ledger", "ledger.sqlite")
        assert words in verified.output
        assert verified.exit_code == code


@pytest.mark.usefixtures("folder")
def test_a_monthly_job_needs_no_switch_and_a_month_is_released_once():
    for month, code in (("2026-11", 0), ("2026-12", 0), ("2026-11", 4), ("2026 11", 2)):
        done = run(*RELEASE, *GROUPS, "--period", month, "--overwrite")
        assert done.exit_code == code, done.output


@pytest.mark.usefixtures("folder")
def test_protocols_are_not_written_over():
    before = al.Protocol.load("protocol.json")
    for command in (NEW, ("plan", "--epsilon", 1, "--people", 999)):
        refused = run(*command, "-o", "protocol.json")
        assert refused.exit_code == 2
        assert "--overwrite" in refused.output
    assert al.Protocol.load("protocol.json") == before
    assert run(*NEW, "-o", "protocol.json", "--seed", "other", "--overwrite").exit_code == 0
    assert al.Protocol.load("protocol.json") != before
    planned = run(
        "plan", "--epsilon", 1, "--people", 999,
        "--unit", "one patient", "-o", "n.json",
    )  # fmt: skip
    assert "was written to n.json" in planned.output


@pytest.mark.usefixtures("folder")
def test_one_party_by_a_label_with_weights():
    weighted = (*RELEASE, "--label", "my hospital", "--weight", "cost", "--no-ledger")
    refused = run(*weighted)
    assert refused.exit_code == 2
    assert "weight cannot be used where people vote" in " ".join(refused.output.split())
    run(*NEW, "--contribution", 2, "-o", "protocol.json", "--overwrite")
    done = run(*weighted)
    assert done.exit_code == 0, done.output
    assert "At most 2 of each person's events, by weight, are counted" in done.output.replace("\n", " ")
    assert al.load("sketches.parquet").labels == ("my hospital",)
    assert "charged" not in done.output


def test_a_protocol_is_shown_in_words_and_as_json(folder):
    shown = run("show", "protocol.json")
    assert "one patient" in shown.output
    assert "inconclusive about nearly everything" in shown.output
    (document,) = json.loads(run("show", "protocol.json", "--format", "json").output)
    protocol = al.Protocol.load(folder / "protocol.json")
    assert document["fingerprint"] == protocol.fingerprint
    assert document["total_share"] == "0.1"
    assert document["contribution"] == "vote"
    assert "Each person has one vote" in " ".join(shown.output.split())
    run(*NEW, "--contribution", 3, "-o", "amounts.json")
    assert "vote" not in run("show", "amounts.json").output


def test_the_unit_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    without = [argument for argument in NEW if argument not in ("--unit", "one patient")]
    refused = run(*without, "-o", "p.json")
    assert refused.exit_code == 2
    assert "--unit is missing" in refused.output
    monkeypatch.setattr("armslength.cli.protocol.is_terminal", lambda _: True)
    asked = run(*without, "-o", "p.json", input="one child\n")
    assert asked.exit_code == 0, asked.output
    assert al.Protocol.load("p.json").unit == "one child"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--input-dim", 5, "--open-vocabulary"), "cannot be combined with --input-dim"),
        (("--transform", "Identity"), "needs --input-dim"),
        (("--transform", "HadamardJL"), "--transform"),  # for arrays, in Python
    ],
)
def test_protocols_that_cannot_be_are_refused(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*NEW, "-o", "p.json", *arguments)
    assert done.exit_code == 2
    assert says in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("transform", ["SparseJL", "Identity"])
def test_protocols_of_every_transform(transform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("--epsilon", 1, "--unit", "u", "--input-dim", 40)
    size = ("--sketch-dim", 16) if transform == "SparseJL" else ()
    done = run("protocol", "new", *arguments, *size, "--transform", transform, "-o", "p.json")
    assert done.exit_code == 0, done.output
    assert al.Protocol.load("p.json").transform.name == transform


@pytest.mark.usefixtures("folder")
def test_show_lists_rows_and_guarantee_in_three_forms():
    run(*RELEASE, *GROUPS)
    shown = run("show", "sketches.parquet").output
    assert "3 rows of 16 numbers" in shown
    assert "1-differentially private" in shown
    (document,) = json.loads(run("show", "sketches.parquet", "--format", "json").output)
    assert [row["label"] for row in document["rows"]] == ["north", "south", "east"]
    lines = run("show", "sketches.parquet", "--format", "csv").output.splitlines()
    assert lines[0] == "file,label,noises,in_clear,total,people,implausible"
    assert len(lines) == 4
    protocol = al.Protocol.load("protocol.json")
    al.sketch_in_clear(protocol, [[1]], items=["flu"]).save("clear.parquet")
    assert "NOT PRIVATE" in run("show", "clear.parquet").output
    for other in (("protocol.json", "--format", "csv"), ("sketches.parquet", "--format", "markdown")):
        assert run("show", *other).exit_code == 2


@pytest.mark.usefixtures("folder")
def test_sums_are_shown_as_combinations():
    run(*RELEASE, *GROUPS)
    rows = al.load("sketches.parquet")
    (rows[0] + rows[1]).save("sum.parquet")
    assert "a combination of releases" in run("show", "sum.parquet").output
    assert "a combination" not in run("show", "sketches.parquet").output
    clear = al.sketch_in_clear(rows.protocol, [[1]], labels=["north"], items=["flu"])
    (rows[0] + clear).save("mixed.parquet")
    assert "NOT PRIVATE" in run("show", "mixed.parquet").output
    assert "NOT PRIVATE" in run("show", "--card", "mixed.parquet").output


def refused(*arguments, code=2):
    """The one line with which a command refuses."""
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert done.output.startswith("armslength: ")
    assert done.output.count("\n") == 1
    return done.output


@pytest.mark.parametrize(
    ("option", "text", "meant"),
    [("--epsilon", "1,0", "1.0"), ("--total-share", "2,5 %", "0.025")],
)
@pytest.mark.usefixtures("folder")
def test_numbers_as_other_people_write_them(option, text, meant):
    said = refused(*NEW, option, text, "-o", "other.json")
    assert f"got {text!r}; did you mean {meant}?" in said
    assert option in said
    assert "did you mean" not in refused(*NEW, option, "many", "-o", "other.json")


@pytest.mark.parametrize(
    ("name", "data", "names"),
    [
        ("semicolons.csv", b"patient;code\np1;zq-flu\n", ["';'", "one column"]),
        ("ragged.csv", b"patient,code\np1,flu\np2,zq-flu,cold\n", ["line 3", "ragged.csv", "fields"]),
        ("latin.csv", b"patient,code\np1,zq-caf\xe9\n", ["latin.csv", "utf-8", "--encoding"]),
    ],
)
def test_text_files_of_another_dialect_are_named_with_the_way_out(folder, name, data, names):
    (folder / name).write_bytes(data)
    said = refused(
        "release", name, *RELEASE[2:], "--label", "north", "--new-ledger", "--ledger", "new.sqlite"
    )
    for part in names:
        assert part in said
    assert "zq" not in said


def test_a_protocol_that_was_edited_by_hand(folder):
    document = json.loads((folder / "protocol.json").read_text(encoding="utf-8"))
    for field, value, named in (
        ("epsilon", "3", ["scale", "total_scale"]),
        ("contribution", 5, ["radius"]),
        ("total_share", "0.2", ["scale", "total_scale"]),
        ("derived", {}, ["grid_radius", "scale"]),
        ("derived", None, ["derived"]),
    ):
        edited = {**document, field: value}
        (folder / "edited.json").write_text(json.dumps(edited), encoding="utf-8")
        said = refused("show", "edited.json", code=5)
        assert "edited by hand" in said
        assert "protocol new" in said
        for name in named:
            assert name in said


def test_one_row_is_not_enough_to_compare(folder):
    assert run(*RELEASE, "--label", "north").exit_code == 0
    for verb in ("compare", "cluster", "outliers"):
        said = refused(verb, "sketches.parquet")
        assert "the files have 1; name the files of other parties" in said
        (folder / "one").mkdir(exist_ok=True)
        al.load("sketches.parquet").save("one/sketches.parquet")
        assert refused(verb, "one") == said


@pytest.mark.parametrize("address", ["s3://bucket/x.parquet"])
@pytest.mark.usefixtures("folder")
def test_addresses_of_other_machines_are_not_read(address):
    scheme = address.partition("//")[0].lower()
    for command in (
        ["compare", address],
        ["report", address, "-o", "page.html"],
        ["drift", "visits.parquet", address],
        ["show", address],
        ["show", "--card", address],
    ):
        said = refused(*command)
        assert scheme in said
        assert "copy the file here first" in said
    for read in (al.load, al.Protocol.load):
        with pytest.raises(al.ParameterError, match="copy the file here first"):
            read(address)


SOURCES = {
    "sqlite:///visits.db --table visits": ("visits.db", None),
    "sqlite:///visits.db --query": ("visits.db", None),
    "visits.txt --delimiter tab --encoding utf-16": (
        "visits.txt",
        lambda text: text.replace(",", "\t").encode("utf-16"),
    ),
    "visits.csv --delimiter ; --quote '": (
        "visits.csv",
        lambda text: text.replace(",", ";").replace("p1", "'p1'").encode(),
    ),
    "visits.tsv --delimiter , --quote none": ("visits.tsv", str.encode),
    "'day=*/visits.csv'": ("day=1/visits.csv", str.encode),
    "- --input-format csv": (None, None),
}


@pytest.mark.parametrize("words", SOURCES)
def test_commands_read_every_source(folder, words):
    name, write = SOURCES[words]
    text = "patient,code\np1,flu\np2,cold\n"
    if name == "visits.db":
        with closing(sqlite3.connect(folder / name)) as connection, connection:
            connection.execute("CREATE TABLE visits (patient, code)")
            connection.executemany("INSERT INTO visits VALUES (?, ?)", [("p1", "flu"), ("p2", "cold")])
    elif name is not None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(write(text))
    words = words.replace("'day", "day").replace("csv'", "csv").split()
    if words[-1] == "--query":
        words.append("SELECT * FROM visits")
    columns = ["--person", "patient", "--item", "code", "--label", "north"]
    known = [*words, *columns, "--protocol", "protocol.json"]
    pipe = {"input": text if words[0] == "-" else None}
    checked = run("check", *known, "--format", "json", **pipe)
    assert checked.exit_code == 7, checked.output
    document = json.loads(checked.output)
    assert document["people"] == 2
    assert document["small_groups"] == {"north": 2}
    released = run("release", *known, "--no-ledger", "-o", "new.parquet", **pipe)
    assert released.exit_code == 0, released.output


def test_commands_name_the_option_that_is_missing(folder):
    (folder / "visits.txt").write_text("patient;code\n", encoding="utf-8")
    (folder / "visits.xlsx").write_bytes(b"")
    for words, option in {
        ("visits.txt",): "--delimiter",
        ("-",): "--input-format",
        ("sqlite:///visits.db",): "--table or --query",
        ("visits.xlsx",): "--input-format",
    }.items():
        assert option in refused("release", *words, *RELEASE[2:], "--label", "north", "--no-ledger")


@pytest.mark.usefixtures("folder")
def test_a_weak_promise_is_a_warning_of_its_own_line():
    weak = [*NEW, "--epsilon", 11, "-o", "weak.json"]
    dry = [*RELEASE, "--label", "north", "--protocol", "weak.json", "--dry-run"]
    plan = ["plan", "--epsilon", 11, "--distance", 100]
    for command in (weak, ["show", "weak.json"], dry, plan):
        done = run(*command)
        assert done.exit_code == 0, done.output
        warnings = [line for line in done.output.splitlines() if line.startswith("WARNING: ")]
        assert len(warnings) == 1, done.output
        assert "ε is above 10" in warnings[0]
    assert "WARNING" not in run("show", "protocol.json").output
