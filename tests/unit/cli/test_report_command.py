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
    page = tmp_path / "page.html"
    result = run(sketches, "-o", page, "--title", "Three hospitals", "--level", "0.9", "--each")
    assert result.exit_code == 0, result.output
    assert str(page) in result.output
    assert "<h1>Three hospitals</h1>" in page.read_text(encoding="utf-8")


def test_the_page_is_report_html_unless_another_is_named(sketches, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # and can be written again: nothing in it is lost
        assert run(sketches).exit_code == 0
        assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    "flags", [("--each",), ("--level", "0.8"), ("--about", "counts", "--alike", "1")], ids=str
)
def test_every_option_is_heard(sketches, tmp_path, flags):
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for page, options in zip(pages, ((), flags), strict=True):
        assert run(sketches, "-o", page, *options).exit_code == 0
    one, two = (page.read_text(encoding="utf-8") for page in pages)
    assert one != two


def test_rows_without_margins_can_be_left_out(tmp_path):
    page = tmp_path / "report.html"
    for row in with_margins([[0.1, 0.1, 0.3], [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]], labels=["a", "b", "c"]):
        bare = al.Sketches(row.values, row.labels, row.noises, row.protocols, row.totals)
        (bare if row.labels == ("b",) else row).save(tmp_path / f"{row.labels[0]}.parquet")
    files = [tmp_path / f"{label}.parquet" for label in "abc"]
    for more, is_named in (((), True), (("--exclude", "b"), False)):
        assert run(*files, "-o", page, *more).exit_code == 0
        text = page.read_text(encoding="utf-8")
        assert "Injuries (+" in text
        assert ("<bdi>b</bdi>" in text) == is_named


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["{sketches}", "-o", "nowhere/r.html"], 2, "cannot write"),
        (["{sketches}", "-o", "report.pdf"], 2, ".html"),
        (["{text}", "-o", "r.html"], 5, "not a sketch file"),
    ],
)
def test_bad_input_is_one_line_and_no_file(arguments, code, message, sketches, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.parquet").write_text("no parquet", encoding="utf-8")
    result = run(*(argument.format(sketches=sketches, text="text.parquet") for argument in arguments))
    assert result.exit_code == code
    assert message in result.stderr
    assert not list(tmp_path.glob("r*.[hp]*"))
