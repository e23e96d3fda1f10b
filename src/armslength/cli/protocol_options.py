"""Options that say what data is and what is protected: the same words in `plan` and in `protocol new`."""

from collections.abc import Callable
from typing import Any

import click

from armslength.cli.parameter_types import NumberRange

_DATA = (
    click.option("--input-dim", type=int, help="How many coordinates the data has."),
    click.option(
        "--open-vocabulary",
        is_flag=True,
        help="Coordinates are items that nobody has listed, instead of --input-dim.",
    ),
)
_PRIVACY = (
    click.option("--epsilon", required=True, help="ε of each release, such as 1 or 0.5."),
    click.option("--delta", default="0", show_default=True, help="δ; 0 is pure differential privacy."),
    click.option(
        "--contribution", type=int, help="The most items that one person contributes; it sets the radius."
    ),
    click.option(
        "--radius", help="How far one unit of protection moves the data, in data units.  [default: 1]"
    ),
    click.option(
        "--relation",
        type=click.Choice(["add_remove", "replace"]),
        default="add_remove",
        show_default=True,
        help="Whether one person is added or removed, or replaced.",
    ),
    click.option(
        "--norm",
        type=click.Choice(["l1", "l2"]),
        default="l1",
        show_default=True,
        help="l2: a whole vector within a ball is protected.",
    ),
    click.option(
        "--total-share",
        default="0",
        show_default=True,
        help="The share of ε for the total of each row, such as 0.1: then shapes can be compared, not only sizes.",
    ),
)
_GRID = (
    click.option(
        "--resolution", default="1", show_default=True, help="1 for counts, a power of two, or auto."
    ),
    click.option(
        "--on-grid/--off-grid",
        default=None,
        help="Whether data is promised to be multiples of the resolution.",
    ),
    click.option("--touched", type=int, help="How many entries one unit can change, for data off the grid."),
    click.option(
        "--value-range", type=NumberRange(), help="The public range to which each coordinate is clamped."
    ),
    click.option(
        "--vocabulary",
        type=click.File(encoding="utf-8"),
        help="A text file with the name of each coordinate on a line of its own, in order.",
    ),
    click.option(
        "--items",
        type=click.Choice(["string", "int64"]),
        default="string",
        show_default=True,
        help="What names the items of an open vocabulary.",
    ),
    click.option("--seed", help="The public seed; a fresh one is made and printed otherwise."),
)


def protocol_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what every protocol needs to know."""
    for option in reversed((*_DATA, *_PRIVACY, *_GRID)):
        command = option(command)
    return command


def check_dimension(input_dim: int | None, *, open_vocabulary: bool) -> None:
    """One of the two must be said, and not both."""
    if (input_dim is None) != open_vocabulary:
        raise click.UsageError("either --input-dim or --open-vocabulary must be given, and not both")


def read_vocabulary(file: Any) -> list[str] | None:
    """The names in a vocabulary file, in order."""
    return None if file is None else file.read().splitlines()
