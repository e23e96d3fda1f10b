"""The page says of each part which code gave its figures, and when."""

import json
import subprocess

import pytest
from audit.origin import Origin
from audit.sections import Check, Section

from audit import origin, page, sections

FIGURES = Section("A part", "Words.", ("a",), (("1",),), (Check("it holds", True, "found"),))


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Figures and the page go to a folder of the test."""
    for module in (sections, page):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "audit.md")
    return tmp_path


def run_at(monkeypatch, name, where, *, quick=False):
    """A part that is run with the code of `where`."""
    monkeypatch.setattr(Origin, "here", lambda: where)
    return sections.measured(name, lambda _: FIGURES, quick=quick)


@pytest.mark.usefixtures("results")
def test_old_figures_keep_their_commit_and_day(monkeypatch):
    run_at(monkeypatch, "old", Origin("aaaaaaaaaa", "2025-01-02", edited=False))
    run_at(monkeypatch, "new", Origin("bbbbbbbbbb", "2026-03-04", edited=False))
    page.write_page(["old", "new", "never"])
    written = page.PAGE.read_text(encoding="utf-8")
    table, old, new, never, *_ = written.split("\n## ")
    assert "| A part | 1 | 1 | 0.0 | aaaaaaaaaa | 2025-01-02 |\n" in table
    assert "| A part | 1 | 1 | 0.0 | bbbbbbbbbb | 2026-03-04 |\n" in table
    assert "| never | not run | | | | |" in table
    assert "Files were edited" not in written
    assert "Measured at commit aaaaaaaaaa on 2025-01-02." in old
    assert "Measured at commit bbbbbbbbbb on 2026-03-04." in new
    assert "Not run." in never


@pytest.mark.usefixtures("results")
def test_figures_of_edited_files_are_marked(monkeypatch):
    run_at(monkeypatch, "one", Origin("aaaaaaaaaa", "2025-01-02", edited=True))
    page.write_page(["one"])
    written = page.PAGE.read_text(encoding="utf-8")
    assert "| aaaaaaaaaa \\* | 2025-01-02 |" in written
    assert "Files were edited after that commit" in written


def test_figures_of_unknown_code_are_not_shown(results):
    (results / "one.json").write_text(json.dumps({"title": "A part", "checks": []}), encoding="utf-8")
    page.write_page(["one"])
    assert "| one | not run |" in page.PAGE.read_text(encoding="utf-8")


def test_a_quick_run_is_kept_nowhere(results, monkeypatch):
    run_at(monkeypatch, "one", Origin("aaaaaaaaaa", "2025-01-02", edited=False), quick=True)
    assert list(results.iterdir()) == []


def test_what_is_kept(results, monkeypatch):
    run_at(monkeypatch, "one", Origin("aaaaaaaaaa", "2025-01-02", edited=True))
    kept = json.loads((results / "one.json").read_text(encoding="utf-8"))
    assert kept["origin"] == {"commit": "aaaaaaaaaa", "date": "2025-01-02", "edited": True}


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *who, *arguments],  # noqa: S607  # whichever git the developer has
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_the_origin_of_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert Origin.here(tmp_path).commit == "no repository"
    git(tmp_path, "init", "-q")
    for name in ("code.py", origin.PAGE.relative_to(origin.ROOT)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "untracked").touch()
    (tmp_path / "docs" / "audit.md").write_text("2")
    clean = Origin.here(tmp_path)
    assert git(tmp_path, "rev-parse", "HEAD").startswith(clean.commit)
    assert len(clean.commit) == 10
    assert not clean.edited
    (tmp_path / "code.py").write_text("2")
    assert Origin.here(tmp_path).edited


def test_a_part_that_was_not_run_here_keeps_its_figures(results, monkeypatch):
    for name in ("one", "two"):
        run_at(monkeypatch, name, Origin("aaaaaaaaaa", "2025-01-02", edited=False))
    page.write_page(["one", "two"])
    before = page.PAGE.read_text(encoding="utf-8")
    (results / "one.json").unlink()
    page.write_page(["one", "two"])
    assert page.PAGE.read_text(encoding="utf-8") == before
    (results / "two.json").unlink()
    page.write_page(["one", "two", "three"])
    after = page.PAGE.read_text(encoding="utf-8")
    assert after.count("Measured at commit aaaaaaaaaa on 2025-01-02.") == 2
    assert "| three | not run |" in after
    assert after.count("## What is not shown") == 1
