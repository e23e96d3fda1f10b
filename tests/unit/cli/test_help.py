"""Help: every verb teaches with an example, answers at once, and completes in a shell."""

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from armslength.cli.main import VERBS, main


def commands():
    """Every command and subcommand, as words."""
    context = click.Context(main)
    for verb in VERBS:
        command = main.get_command(context, verb)
        yield [verb], command
        if isinstance(command, click.Group):
            yield from (([verb, name], inner) for name, inner in command.commands.items())


ALL = [words for words, _ in commands()]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_teaches_with_an_example(words):
    done = CliRunner().invoke(main, [*words, "--help"])
    assert done.exit_code == 0
    command = {" ".join(each): inner for each, inner in commands()}[" ".join(words)]
    if not isinstance(command, click.Group):
        assert f"  armslength {' '.join(words)}" in done.output
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in ("output_format", "help"):
            assert parameter.help, (words, parameter.name)


def test_help_imports_nothing_heavy():
    program = (
        "import sys\n"
        "from armslength.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'numba', 'duckdb', 'flint', 'sqlite3', 'tqdm'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("armslength co", "compare"),
        ("armslength ledger sh", "show"),
        ("armslength compare --ab", "--about"),
    ],
)
def test_shells_complete(words, offered):
    environment = {
        **os.environ,
        "_ARMSLENGTH_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    program = "from armslength.cli.main import main; main(prog_name='armslength')"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert f"plain,{offered}" in done.stdout.split()
