"""Messages of commands speak of options, never of arguments of Python."""

import pytest
from click.testing import CliRunner

from armslength.cli.exit_codes import with_options
from armslength.cli.main import main

OPTIONS = {
    "epsilon": "--epsilon",
    "total_share": "--total-share",
    "repeat": "--repeat",
    "format": "--input-format",
}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("give epsilon or total_share", "give epsilon or --total-share"),
        ("name another label, or pass repeat=True", "name another label, or pass --repeat"),
        ("say format='csv' for 'epsilon=x'", "say --input-format 'csv' for 'epsilon=x'"),
        ("epsilons and retotal_share stay", "epsilons and retotal_share stay"),
        ("format=a/x.csv and b/total_share must be there", "format=a/x.csv and b/total_share must be there"),
        ("take epsilon=0.5, total_share=.25", "take --epsilon 0.5, --total-share .25"),
    ],
)
def test_arguments_become_options(message, expected):
    assert with_options(message, OPTIONS) == expected


def test_a_command_names_its_option():
    words = (
        "protocol new --epsilon 1,0 --open-vocabulary --sketch-dim 8 --contribution 1 --unit visit -o x.json"
    )
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 2
    assert "armslength: --epsilon must" in done.stderr
