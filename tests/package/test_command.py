"""The command by itself."""

from click.testing import CliRunner

import armslength
from armslength.cli.main import main


def test_version():
    result = CliRunner().invoke(main, ["--version"])
    assert result.exit_code == 0
    assert result.output == f"armslength, version {armslength.__version__}\n"


def test_help_and_no_arguments_teach_the_same():
    bare, helped = (CliRunner().invoke(main, arguments) for arguments in ([], ["--help"]))
    assert bare.exit_code == helped.exit_code == 0
    assert "differentially private sketch" in helped.output
    assert bare.output == helped.output


def test_unknown_options_are_usage_errors():
    assert CliRunner().invoke(main, ["--nonsense"]).exit_code == 2
