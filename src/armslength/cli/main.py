"""The command `armslength`: one verb each in a file of its own; errors become one line and an exit code."""

import click

from armslength.cli.exit_codes import CleanErrors
from armslength.cli.plan import plan
from armslength.version import __version__


@click.group(
    cls=CleanErrors,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""Exit codes: 0 done, 1 internal error, 2 bad input, 3 cannot be resolved, 4 budget, 5 incompatible or
damaged file.""",
)
@click.version_option(__version__, prog_name="armslength")
@click.pass_context
def main(ctx: click.Context, /) -> None:
    """Compare populations that may not be shared.

    Each party releases one small differentially private sketch of its data; from then on anybody can
    estimate distances between the parties, with honest error bars.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


main.add_command(plan)
