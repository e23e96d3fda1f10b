"""The command `armslength`: one verb each in a file of its own; errors become one line and an exit code."""

from importlib import import_module
from typing import Any

import click

from armslength.cli.exit_codes import CleanErrors
from armslength.version import __version__


class LazyGroup(CleanErrors):
    """A group whose commands are imported when they are called, so that `armslength --help` answers at once.

    Args:
        verbs: (name, module with a command of that name, short help), in the order of the list.
    """

    def __init__(self, *args: Any, verbs: tuple[tuple[str, str, str], ...] = (), **known: Any) -> None:
        super().__init__(*args, **known)
        self._homes = {name: (module, line) for name, module, line in verbs}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the work."""
        return [*self._homes, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb, imported now."""
        if cmd_name not in self._homes:
            return super().get_command(ctx, cmd_name)
        module, _ = self._homes[cmd_name]
        command: click.Command = getattr(import_module(module), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing any of them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._homes.items()])


# In the order of use.
_VERBS = (
    ("plan", "armslength.cli.plan", "Choose the settings; says how accurate, and whether it can work."),
    ("protocol", "armslength.cli.protocol", "Make or show what all parties agree on."),
    ("release", "armslength.cli.release", "Release one private sketch for each group of an event table."),
    ("inspect", "armslength.cli.inspect", "Show what a sketch file holds, and its guarantee."),
    ("card", "armslength.cli.card", "Print the release card for a data-protection officer."),
    ("verify", "armslength.cli.verify", "Recheck a sketch file that you received."),
    ("compare", "armslength.cli.compare", "Distances between all parties, with error bars."),
    ("nearest", "armslength.cli.nearest", "Find the nearest parties of each party."),
    ("cluster", "armslength.cli.cluster", "Group the parties; says which groups are certain."),
    ("alike", "armslength.cli.alike", "Decide whether two parties are alike."),
    ("outliers", "armslength.cli.outliers", "Find the parties that are unlike the rest."),
    ("drift", "armslength.cli.drift", "Find what changed between two releases of the same parties."),
    ("sum", "armslength.cli.sum", "Add sketches: two wards make one hospital."),
    ("report", "armslength.cli.report", "Write one offline page with all results."),
    ("ledger", "armslength.cli.ledger", "Show what was spent, and set budgets."),
    ("demo", "armslength.cli.demo", "Run the whole workflow on generated data."),
)


@click.group(
    cls=LazyGroup,
    verbs=_VERBS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""Exit codes: 0 done, 1 internal error, 2 bad input, 3 cannot be resolved, 4 budget, 5 incompatible or
damaged file, 6 released but written elsewhere than asked, 130 interrupted (128 and the signal).""",
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
