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
        ("epsilon must be positive, got 0", "--epsilon must be positive, got 0"),
        ("give epsilon or total_share", "give epsilon or --total-share"),
        ("name another label, or pass repeat=True", "name another label, or pass --repeat"),
        ("say format='csv' for 'epsilon=x'", "say --input-format 'csv' for 'epsilon=x'"),
        (
            "'total_share' is a group, and so is 'repeat=True'",
            "'total_share' is a group, and so is 'repeat=True'",
        ),
        ("epsilons and retotal_share stay", "epsilons and retotal_share stay"),
        ("epsilon.csv must be a table", "epsilon.csv must be a table"),
        ("format=a/x.csv and b/total_share must be there", "format=a/x.csv and b/total_share must be there"),
        (
            "total_share must have commas, got total_share.csv",
            "--total-share must have commas, got total_share.csv",
        ),
        ("take epsilon=0.5, total_share=.25", "take --epsilon 0.5, --total-share .25"),
        (
            "the protocol's is 'total_share', got total_share",
            "the protocol's is 'total_share', got --total-share",
        ),
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
