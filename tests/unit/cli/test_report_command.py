"""`armslength report` as it is typed."""

from functools import partial

import pytest

import armslength as al
from report_parties import hospitals, with_margins
from unit.cli import commands

run = partial(commands.run, "report")


@pytest.fixture
def sketches(tmp_path):
    path = tmp_path / "sketches.parquet"
    hospitals(3).save(path)
    return path


def test_a_page_is_written_and_its_place_is_printed(sketches, tmp_path):
    page = tmp_path / "report.html"
    result = run(sketches, "-o", page, "--title", "Three hospitals", "--level", "0.9", "--each")
    assert result.exit_code == 0, result.output
    assert result.output == f"the report is in {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "<h1>Three hospitals</h1>" in text
    assert "at 90%, each interval by itself" in text


def test_intervals_hold_together_unless_asked_otherwise(sketches, tmp_path):
    page = tmp_path / "report.html"
    assert run(sketches, "-o", page).exit_code == 0
    assert "at 95%, all intervals together" in page.read_text(encoding="utf-8")


def test_rows_without_margins_can_be_left_out(tmp_path):
    page = tmp_path / "report.html"
    for row in with_margins([[0.1, 0.1, 0.3], [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]], labels=["a", "b", "c"]):
        bare = al.Sketches(row.values, row.labels, row.noises, row.protocols, row.totals)
        (bare if row.labels == ("b",) else row).save(tmp_path / f"{row.labels[0]}.parquet")
    files = [tmp_path / f"{label}.parquet" for label in "abc"]
    assert run(*files, "-o", page).exit_code == 0
    assert "more with Injuries (+" in page.read_text(encoding="utf-8")
    assert "Without <bdi>b</bdi>:" in page.read_text(encoding="utf-8")
    assert run(*files, "-o", page, "--exclude", "b").exit_code == 0
    assert "Without <bdi>" not in page.read_text(encoding="utf-8")
    assert "more with Injuries (+" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{sketches}", "-o", "nowhere/r.html"], 2, "cannot write"),
        (["{sketches}"], 2, "--output"),
        (["{text}", "-o", "r.html"], 5, "not a sketch file"),
    ],
)
def test_bad_input_is_one_line_and_no_file(arguments, code, message, sketches, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.parquet").write_text("no parquet", encoding="utf-8")
    result = run(*(argument.format(sketches=sketches, text="text.parquet") for argument in arguments))
    assert result.exit_code == code
    assert message in result.stderr
    assert not (tmp_path / "r.html").exists()
