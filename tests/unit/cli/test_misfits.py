"""Files that do not fit the others: every command names them in the same way, and they cost only their own answers."""

import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from report_parties import CHAPTERS, chapters, counted

NAMES = ["north", "south", "bay", "hill", "lake", "dale", "moor", "ford", "glen"]
FAR = "glen"
SHARES = [[0.2, 0.3, 0.4, 0.1, 0.05]] * 8 + [[0.6, 0.1, 0.1, 0.4, 0.05]]
USED = chapters(epsilon=4)
BARE = al.Protocol(USED.transform, al.Votes(total_share="0.1"), epsilon=4)
COMMANDS = {
    "compare": (),
    "cluster": (),
    "outliers": (),
    "explain": (FAR,),
    "report": ("-o", "report.html"),
}
# What lake's file has instead: its settings, and the field that is named.
ODD = {
    "epsilon": chapters(epsilon=3),
    "unit": chapters(epsilon=4, unit="one visit"),
    "margins": BARE,
    "seed": al.Protocol(
        al.SparseJL(sketch_dim=256, seed="other"),
        al.Votes(total_share="0.1", item_groups=al.ItemGroups(CHAPTERS, share="0.4", limit=2)),
        epsilon=4,
    ),
}


def run(*arguments):
    return CliRunner().invoke(main, list(map(str, arguments)))


def released(used, label, shares):
    """One row, the same in every run up to the ids of its noise; without margins if the protocol has none."""
    rng = np.random.default_rng(list(label.encode()))
    counts = rng.binomial(5000, shares)
    if used.margins is not None:
        return counted(used, [label], [5000], [counts], rng)
    row = counted(USED, [label], [5000], [counts], rng)
    noises = type(row.noises).fresh(row.noises.ids.tobytes(), used, "events")
    return al.Sketches(row.values, row.labels, noises, [used], row.totals, None, row.spread)


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    top = tmp_path / "study"
    top.mkdir()
    for name, shares in zip(NAMES, SHARES, strict=True):
        released(USED, name, shares).save(top / f"{name}.parquet")
    return top


def replace_lake(study, field):
    released(ODD[field], "lake", SHARES[4]).save(study / "lake.parquet")


@pytest.mark.parametrize("field", ODD)
def test_every_command_names_the_file_the_label_and_the_field(study, field):
    shutil.copytree(study, "before")
    replace_lake(study, field)
    differs = "margins differ" if field == "margins" else f"{field} differs"
    words = f"armslength: lake (study/lake.parquet){' left out' * (field == 'seed')}: its {differs}"
    files = [f"study/{name}.parquet" for name in NAMES]
    for command, more in COMMANDS.items():
        for named in (["study"], files):
            done = run(command, *named, *more)
            assert done.exit_code == 0, done.output
            assert next(line for line in done.stderr.splitlines() if "lake" in line) == words, command
            assert done.stderr.count("study/lake.parquet") == 1
    done = run("drift", "before", "study")
    assert done.exit_code == 0, done.output
    assert done.stderr == f"{words}\n"
    assert ("lake" in done.stdout) == (field != "seed")
    # Those that were not asked about are not named.
    done = run("explain", "study", "north", FAR)
    assert (done.exit_code, done.stderr) == (0, "")
    for command in ("compare", "report"):
        done = run(command, "study", "--exclude", "lake", *COMMANDS[command])
        assert (done.exit_code, done.stderr) == (0, "")
    done = run("verify", "study")
    assert f"its {differs}" in done.stderr
    assert "lake (study/lake.parquet)" in done.stderr


@pytest.mark.parametrize("field", ODD)
def test_the_reasons_of_all_others_stay(study, field):
    replace_lake(study, field)
    more = r"(more|fewer) with \w+ \([+−]\d+\.\d points\)"
    assert re.search(more, run("outliers", "study").stdout)
    assert re.search(r"\+\d+\.\d", run("explain", "study", FAR).stdout)
    assert run("report", "study", "-o", "report.html").exit_code == 0
    assert re.search(more, (study.parent / "report.html").read_text(encoding="utf-8"))
    with_lake = (
        al.load(study) if field != "seed" else al.load([study / f"{n}.parquet" for n in NAMES if n != "lake"])
    )
    assert al.explain(with_lake, "north", FAR).found


def test_other_seeds_are_an_error_in_python_and_where_nothing_is_left_to_compare(study):
    replace_lake(study, "seed")
    with pytest.raises(al.IncompatibleSketchesError, match=r"^lake \(.*lake\.parquet\).*: its seed differs"):
        al.load(study)
    parts = [al.load(study / f"{name}.parquet") for name in NAMES]
    with pytest.raises(al.IncompatibleSketchesError, match=r"^lake cannot be compared .* its seed differs"):
        al.concat(parts)
    done = run("compare", "study/north.parquet", "study/lake.parquet")
    assert done.exit_code == 5
    assert "lake (study/lake.parquet) cannot be compared with the others: its seed differs" in done.output
    for sides in (("lake", "north"), ("north", "lake")):
        done = run("explain", "study", *sides)
        assert done.exit_code == 5
        assert "lake (study/lake.parquet) cannot be compared with the others: its seed differs" in done.output
    assert run("drift", "study", "study/lake.parquet").exit_code == 5


def test_what_is_asked_about_decides_what_is_usual(study):
    for name in ("lake", "bay"):
        released(ODD["seed"], name, SHARES[4]).save(study / f"{name}.parquet")
    done = run("compare", "study", "--only", "lake,bay")
    assert (done.exit_code, done.stderr) == (0, "")
    assert (
        run("compare", "study", "--only", "lake,bay,north,hill,glen").stderr.count(
            " left out: its seed differs"
        )
        == 2
    )


def test_the_odd_one_out_is_named_and_not_those_after_it(study):
    """The first file by name is the one that does not fit."""
    released(ODD["seed"], "abbey", SHARES[0]).save(study / "abbey.parquet")
    done = run("compare", "study")
    assert done.stderr.splitlines()[0] == "armslength: abbey (study/abbey.parquet) left out: its seed differs"


@pytest.mark.parametrize("command", [*COMMANDS, "drift"])
def test_a_label_in_two_files_is_named_with_both(study, command):
    released(USED, "north", SHARES[0]).save(study / "lake.parquet")
    files = [f"study/{name}.parquet" for name in sorted(NAMES)]
    for named in (["study"], files) if command != "drift" else (["study"],):
        done = run(command, *named, *COMMANDS.get(command, ("study",)))
        assert done.exit_code == 2
        assert "'north' is in study/lake.parquet and in study/north.parquet" in done.output
        assert len(done.output.splitlines()) == 1
    if command in COMMANDS:
        done = run(command, "study", "--exclude", "north", *COMMANDS[command])
        assert done.exit_code == 0, done.output
    done = run("verify", "study")
    assert "'north' is in study/lake.parquet and in study/north.parquet" in done.stderr


def test_verify_ends_with_how_many_hold(study):
    noises = al.load(study / "bay.parquet").noises
    assert len(noises) == 1
    done = run("verify", *(f"study/{name}.parquet" for name in NAMES))
    assert re.fullmatch(r"\d of 9 hold", done.stdout.splitlines()[-1])
    (study / "bay.parquet").write_bytes(b"damaged")
    again = run("verify", "study")
    assert again.exit_code == 5
    assert re.fullmatch(r"\d of 9 hold", again.stdout.splitlines()[-1])
