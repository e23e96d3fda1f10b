"""What the verbs that answer from sketch files have in common."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from armslength.cli.listing import FORMAT
from armslength.cli.parameter_types import LocalPath

if TYPE_CHECKING:
    from armslength.protocol.sketches import Sketches
    from armslength.search.collection import Collection

LEVEL = click.option(
    "--level",
    type=float,
    default=0.95,
    show_default=True,
    help="The confidence: 1 − the probability that what is said is wrong.",
)
BY = click.option(
    "--by",
    type=click.Choice(["size", "shape"]),
    default="size",
    show_default=True,
    help="size: rows as they are. shape: rows divided by their totals, if the protocol releases totals.",
)
METHOD = click.option(
    "--method",
    type=click.Choice(["spread", "guaranteed"]),
    default="spread",
    show_default=True,
    help="guaranteed: holds for all data, and is several times wider.",
)
_WORK_IS_FREE = "armslength.cli: no work limit"


def _keep_choice(ctx: click.Context, _: click.Parameter, chosen: bool) -> None:
    ctx.meta[_WORK_IS_FREE] = chosen


# Where files are read, `max_work` says what was chosen: commands need no argument for it.
NO_WORK_LIMIT = click.option(
    "--no-work-limit",
    is_flag=True,
    expose_value=False,
    callback=_keep_choice,
    help="Compute what a protocol asks for, however long it takes.  [default: refuse more than a few seconds]",
)
_COMMON = (
    LEVEL,
    BY,
    METHOD,
    FORMAT,
)


def answer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --level, --by, --method and --format."""
    for option in reversed(_COMMON):
        command = option(command)
    return command


def sketch_files(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the sketch files that the command reads, or folders of them, and --no-work-limit."""
    files = click.argument("files", nargs=-1, required=True, type=LocalPath(exists=True), metavar="FILE...")
    return files(NO_WORK_LIMIT(command))


def max_work() -> int | None:
    """How much work the protocols that a command reads may ask for."""
    from armslength.protocol.work import DEFAULT_WORK  # noqa: PLC0415  # --help must not wait for it

    return None if click.get_current_context().meta.get(_WORK_IS_FREE) else DEFAULT_WORK


def load_all(paths: tuple[str, ...], at_least: int = 1) -> "Sketches":
    """The rows of all files, in order; every label once.

    Args:
        paths: Sketch files, and folders of them.
        at_least: How many rows the command needs.
    """
    from armslength.errors import ParameterError  # noqa: PLC0415  # --help must not wait for it
    from armslength.protocol.files import load  # noqa: PLC0415  # the same

    sketches = load(list(paths), max_work=max_work())
    _check_count(sketches, at_least)
    if len(set(sketches.labels)) != len(sketches):
        raise ParameterError(
            "labels must differ between all files, got one of them twice; `armslength drift` compares two releases of one party"
        )
    return sketches


def open_all(paths: tuple[str, ...], at_least: int = 1) -> "Sketches | Collection":
    """The rows of all files; as a collection, in which labels may come twice, if there is a folder among them."""
    if not any(Path(path).is_dir() for path in paths):
        return load_all(paths, at_least)
    from armslength.search.collection import open_collection  # noqa: PLC0415  # --help must not wait for it

    collection = open_collection(paths, max_work=max_work())
    _check_count(collection, at_least)
    return collection


def _check_count(rows: "Sketches | Collection", at_least: int) -> None:
    from armslength.errors import ParameterError  # noqa: PLC0415  # --help must not wait for it

    if len(rows) < at_least:
        raise ParameterError(
            f"the files must hold at least {at_least} rows to compare, got {len(rows)}; "
            "name the files of other parties, too"
        )


def one_against_others(
    sketches: "Sketches | Collection", label: str
) -> "tuple[Sketches, Sketches | Collection]":
    """The row of this label, and all others."""
    from armslength.protocol.sketches import Sketches  # noqa: PLC0415  # --help must not wait for it

    one = sketches[label]
    if not isinstance(sketches, Sketches):
        return one, sketches.without(label)
    return one, sketches.rows([row for row, other in enumerate(sketches.labels) if other != label])
