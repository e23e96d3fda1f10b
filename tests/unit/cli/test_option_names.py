"""Messages of commands speak of options, never of arguments of Python."""

import pytest
from click.testing import CliRunner

from armslength.cli.main import main
from armslength.errors import MissingFileError, ParameterError
from report_parties import hospitals

OPTIONS = {
    "epsilon": "--epsilon",
    "total_share": "--total-share",
    "repeat": "--repeat",
}


@pytest.mark.parametrize(
    ("message", "arguments", "expected"),
    [
        ("epsilon must be positive, got -1", ["epsilon"], "--epsilon must be positive, got -1"),
        ("epsilon must be positive, got -1", [], "epsilon must be positive, got -1"),
        ("give another label, or pass repeat=True", ["repeat"], "give another label, or pass --repeat"),
        ("total_share=0 needs epsilon", ["total_share", "epsilon"], "--total-share 0 needs --epsilon"),
        ("epsilon=3 fails, try epsilon=2", ["epsilon"], "--epsilon 3 fails, try --epsilon 2"),
        ("density must be smaller", ["density"], "density must be smaller"),
    ],
)
def test_arguments_become_options(message, arguments, expected):
    error = ParameterError(message, *arguments)
    assert str(error) == message
    assert error.message(OPTIONS) == expected


def test_an_error_of_a_missing_file_can_name_an_argument():
    assert MissingFileError("pass repeat=True", "repeat").message(OPTIONS) == "pass --repeat"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("protocol new --epsilon 1,0 --open-vocabulary --sketch-dim 8 --contribution 1", "--epsilon must"),
        ("protocol new --epsilon 1 --sketch-dim 8 --pair age:sex", "--pair needs a record"),
        (
            "protocol new --epsilon 1 --sketch-dim 8 --sparsity 3",
            "--sparsity (3) must divide --sketch-dim (8)",
        ),
        ("plan --epsilon 1", "--people is missing"),
        ("plan --epsilon 1 --people 1000 --distance 50", "--people is for"),
        ("plan --epsilon 1 --people 1000 --about counts", "leave out --people"),
        ("compare s.parquet --about people", "--about 'people' needs"),
        ("cluster s.parquet --level 2", "--level must"),
        ("compare s.parquet --fdr --each", "--fdr cannot be combined with --each"),
        ("rehearse --epsilon 0", "--epsilon must"),
    ],
)
def test_a_command_names_its_options(words, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hospitals(2).save("s.parquet")
    unit = ["--unit", "visit", "-o", "x.json"] if words.startswith("protocol") else []
    done = CliRunner().invoke(main, [*words.split(), *unit])
    assert done.exit_code == 2, done.output
    assert f"armslength: {says}" in done.stderr
