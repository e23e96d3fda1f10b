"""The page of all commands: what the commands say of themselves today, and nothing else."""

import runpy
import signal
from pathlib import Path

import click
import pytest

from armslength.cli.main import main

ROOT = Path(__file__).parents[2]
WRITER = runpy.run_path(str(ROOT / "docs" / "write_commands.py"))
TEXT = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")


def _all_commands():
    waiting = [("armslength", main)]
    while waiting:
        path, command = waiting.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            waiting += [
                (f"{path} {name}", command.get_command(context, name))
                for name in command.list_commands(context)
            ]
        if command is not main:
            yield path, command


def test_page_is_up_to_date():
    assert WRITER["page"]() == TEXT, (
        "docs/reference/commands.md is out of date: run python docs/write_commands.py"
    )


def test_the_page_has_the_exit_codes_of_the_commands():
    table = TEXT.partition("\n## Exit codes\n")[2].partition("\n## ")[0]
    listed = [int(line.split("|")[1]) for line in table.splitlines() if line[2:3].isdigit()]
    assert listed == [*range(8), 128 + signal.SIGINT]


def test_page_does_not_depend_on_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert WRITER["page"]() == TEXT


@pytest.mark.parametrize(("path", "command"), list(_all_commands()), ids=lambda value: str(value)[:40])
def test_every_option_is_on_the_page(path, command):
    _, found, after = TEXT.partition(f"\n## {path}\n")
    assert found
    section = after.split("\n## ")[0]
    for option in command.params:
        for name in option.opts if isinstance(option, click.Option) else ():
            assert f"`{name}`" in section
