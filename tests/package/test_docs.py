"""What the documents show: every Python block runs, every link and every named file exists."""

import re
from pathlib import Path

import pytest

from armslength.demo import write_tables

ROOT = Path(__file__).parents[2]
IN_A_SESSION = "docs/guides/spark.md"  # tests/spark runs its blocks
TUTORIAL = "docs/tutorial.md"  # it begins with a command that writes tables
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("page", [name for name in NAMES if name != IN_A_SESSION])
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page == TUTORIAL:
        write_tables([tmp_path / "march.parquet", tmp_path / "april.parquet"], print)
    names: dict[str, object] = {}
    text = (ROOT / page).read_text(encoding="utf-8")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, str(page), "exec"), names)  # noqa: S102  # our own documents


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", text):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_named_files_exist(page):
    text = page.read_text(encoding="utf-8")
    for named in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]+)`", text):
        assert (ROOT / named).exists(), named


def test_architecture_names_functions_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+\w+\.py)::(\w+(?:\.\w+)?)`", text)
    assert named
    for path, function in named:
        source = (ROOT / "src" / "armslength" / path).read_text(encoding="utf-8")
        for part in function.split("."):
            assert re.search(rf"^\s*(?:def|class) {part}\b", source, re.MULTILINE), (path, function)
