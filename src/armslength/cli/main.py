"""The command's root: what `armslength` prints by itself."""

import click

from armslength.version import __version__


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="armslength")
def main() -> None:
    """Compare populations that may not be shared.

    Each party releases one small differentially private sketch of its data; from then on anybody can
    estimate distances between the parties, with honest error bars.
    """
    click.echo(click.get_current_context().get_help())
