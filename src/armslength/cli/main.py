"""The command `armslength`: the verbs, each in a file of its name or of its subject."""

from importlib import import_module

import click

from armslength.cli.exit_codes import CleanErrors
from armslength.version import __version__

# In the order of use.
VERBS = {
    "plan": "Choose the settings; says what you will see, and what you will miss.",
    "rehearse": "Try the whole workflow on public or made-up data; spends nothing.",
    "protocol": "Make what all parties agree on.",
    "check": "Check your own table before a release. Its output is private.",
    "release": "Release one private sketch for each group of an event table.",
    "show": "Show what a sketch file or a protocol holds, and its release card.",
    "verify": "Recheck a sketch file that you received.",
    "compare": "Say which parties differ and which are alike.",
    "cluster": "Group the parties, so that no two of a group differ.",
    "explain": "Show what sets two parties apart.",
    "outliers": "Find the parties that are unlike the others, and why.",
    "drift": "Find what changed between two releases of the same parties.",
    "report": "Write one offline page with all results.",
    "ledger": "Show what was spent, and set budgets.",
    "demo": "Run the whole workflow on generated data.",
}
_FILES = {
    **dict.fromkeys(("show", "verify"), "sketch_files"),
    **dict.fromkeys(("compare", "cluster", "outliers", "drift", "report"), "answers"),
    "demo": "rehearse",
}


class LazyGroup(CleanErrors):
    """The verbs, imported when they are called, so that `armslength --help` answers at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the work."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, imported now."""
        del ctx
        if cmd_name not in VERBS:
            return None
        file = import_module(f"armslength.cli.{_FILES.get(cmd_name, cmd_name)}")
        commands = (value for value in vars(file).values() if isinstance(value, click.Command))
        return next(command for command in commands if command.name == cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing any of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""Exit codes: 0 done, 1 internal error, 2 bad input, 3 cannot be resolved, 4 budget, 5 incompatible or
damaged file, 6 released but written elsewhere than asked, 7 check found problems,
130 interrupted (128 and the signal).""",
)
@click.version_option(__version__, prog_name="armslength")
@click.pass_context
def main(ctx: click.Context, /) -> None:
    """Compare populations that may not be shared.

    Each party releases one small differentially private sketch of its data. Anyone can then estimate
    how far apart the parties are, with honest error bars.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
