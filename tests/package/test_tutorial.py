"""The commands of the tutorial and of the README, run in order in one folder: they end as the page says, and print what it shows."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from armslength.cli.main import main

ROOT = Path(__file__).parents[2]
TUTORIAL, README = ROOT / "docs" / "tutorial.md", ROOT / "README.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
TABLES = ["demo", "--table", "march.parquet"]
COMMAND = re.compile(r"^\$ armslength (.*?)(?<!\\)\n", re.DOTALL | re.MULTILINE)
EXIT_CODE = re.compile(r"^\$ echo \$\?\n(\d+)\n", re.MULTILINE)
TREE = "│├└─ "


def commands(block):
    """(arguments, exit code that the page states, lines that it shows) of each command in a console block."""
    starts = [*COMMAND.finditer(block)]
    for command, following in zip(starts, [*starts[1:], None], strict=True):
        shown = block[command.end() : following.start() if following else None]
        stated = EXIT_CODE.search(shown)
        arguments = shlex.split(command.group(1).replace("\\\n", " "))
        yield arguments, int(stated.group(1)) if stated else 0, EXIT_CODE.sub("", shown).splitlines()


def without_numbers(line):
    """A line's words, in order; noise decides on numbers, and on which branch of a tree a party hangs."""
    return re.sub(r"[\d.,e+-]*\d[\d.,e+-]*", "#", line.strip(TREE)).split()


def test_blocks_are_read_as_the_page_means_them():
    block = '$ armslength a --b "c d" \\\n    -e\nout\n$ echo $?\n3\n$ armslength f\nmore\n'
    assert list(commands(block)) == [(["a", "--b", "c d", "-e"], 3, ["out"]), (["f"], 0, ["more"])]


@pytest.mark.parametrize("page", [TUTORIAL, README], ids=lambda page: page.name)
def test_commands_run_in_order_and_end_as_stated(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    if shlex.join(TABLES) not in blocks[0]:
        assert CliRunner().invoke(main, TABLES).exit_code == 0
    verbs = set()
    for text in blocks:
        for arguments, code, shown in commands(text):
            done = CliRunner().invoke(main, arguments)
            assert done.exit_code == code, (arguments, done.output)
            assert shown, arguments
            printed = [without_numbers(line) for line in done.output.splitlines()]
            for line in shown:
                words = without_numbers(line)
                settled = "#" not in words and words not in (["[…]"], []) and not line.startswith("surely")
                assert not settled or words in printed, (arguments, line)
            verbs.add(arguments[0])
    # The check of a table is private, and goes to a terminal only; the protocol comes from the plan.
    assert page == README or verbs == set(main.list_commands(None)) - {"check", "protocol"}
