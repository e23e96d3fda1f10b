"""The command `armslength`: one verb each in a file of its own; errors become one line and an exit code."""

import click

from armslength.cli.lazy_group import LazyGroup
from armslength.version import __version__

# In the order of the work. A verb `v` is the command `v` of its module; its own --help begins with the same line.
_VERBS = (
    ("plan", "armslength.cli.plan", "Which settings, how accurate, and whether it can work at all."),
    ("protocol", "armslength.cli.protocol", "Make or show what all parties agree on."),
    ("release", "armslength.cli.release", "One private sketch for each group of an event table."),
    ("inspect", "armslength.cli.inspect", "What a sketch file holds, and under which guarantee."),
    ("card", "armslength.cli.card", "The release card, for a data-protection officer."),
    ("verify", "armslength.cli.verify", "Compute all that is public about a sketch file anew."),
    ("compare", "armslength.cli.compare", "Distances between all parties, with intervals."),
    ("nearest", "armslength.cli.nearest", "Who is nearest to whom."),
    ("cluster", "armslength.cli.cluster", "Which parties belong together, and how surely."),
    ("alike", "armslength.cli.alike", "Are these two alike? Yes, no or undecided."),
    ("outliers", "armslength.cli.outliers", "Which parties are unlike the rest."),
    ("drift", "armslength.cli.drift", "What changed between two releases of the same parties."),
    ("sum", "armslength.cli.sum", "Add sketches up: two wards are one hospital."),
    ("report", "armslength.cli.report", "One offline page with everything on it."),
    ("ledger", "armslength.cli.ledger", "What was spent, and how much may be."),
    ("demo", "armslength.cli.demo", "The whole workflow on generated data."),
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

    Each party releases one small differentially private sketch of its data; from then on anybody can
    estimate distances between the parties, with honest error bars.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
