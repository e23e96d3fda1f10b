"""What the verbs that answer from sketch files have in common."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from armslength.cli.output import FORMAT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armslength.sketches.collection import Collection
    from armslength.sketches.sketches import Sketches


# What options of several verbs look like: ranges of numbers, and lists that stand in a file.


class LocalPath(click.Path):
    """A path of this machine; an address of another gets a message of its own."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        from armslength.checks import check_local  # noqa: PLC0415  # --help must not wait for it

        check_local(value)
        return super().convert(value, param, ctx)


class NumberRange(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic in newer versions of click alone
    """A number, or two with a colon between them."""

    name = "LOW[:HIGH]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """(low, high), or a number."""
        if not isinstance(value, str):
            return value
        try:
            ends = [float(part) for part in value.split(":")]
        except ValueError:
            self.fail(f"must be a number or low:high, got {value!r}", param, ctx)
        if len(ends) > 2:
            self.fail(f"must be a number or low:high, got {value!r}", param, ctx)
        return ends[0] if len(ends) == 1 else tuple(ends)


class NameList(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # the same
    """Names with commas between them, or @file with a name on each line."""

    name = "NAMES|@FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The list."""
        if not isinstance(value, str):
            return value
        if not value.startswith("@"):
            return [name.strip() for name in value.split(",")]
        try:
            with open(value[1:], encoding="utf-8-sig") as file:  # noqa: PTH123  # the name is a plain string
                return _without_empty_lines(file.read().splitlines())
        except (OSError, UnicodeDecodeError):
            self.fail(f"must be a readable text file with a name on each line, got {value[1:]!r}", param, ctx)


def _without_empty_lines(lines: "Sequence[str]") -> list[str]:
    return [line for line in lines if line.strip()]


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
    from armslength.protocol.work_budget import DEFAULT_WORK  # noqa: PLC0415  # --help must not wait for it

    return None if click.get_current_context().meta.get(_WORK_IS_FREE) else DEFAULT_WORK


def load_all(paths: tuple[str, ...], at_least: int = 1) -> "Sketches":
    """The rows of all files, in order; every label once.

    Args:
        paths: Sketch files, and folders of them.
        at_least: How many rows the command needs.
    """
    from armslength.errors import ParameterError  # noqa: PLC0415  # --help must not wait for it
    from armslength.sketches.sketch_file import load  # noqa: PLC0415  # the same

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
    from armslength.sketches.collection import open_collection  # noqa: PLC0415  # --help must not wait for it

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
    from armslength.sketches.sketches import Sketches  # noqa: PLC0415  # --help must not wait for it

    one = sketches[label]
    if not isinstance(sketches, Sketches):
        return one, sketches.without(label)
    return one, sketches.rows([row for row, other in enumerate(sketches.labels) if other != label])


# Options that say what data is and what is protected: the same words in `plan` and in `protocol new`.


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
    click.option(
        "--changed-entries", type=int, help="How many entries one unit can change, for data off the grid."
    ),
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


# Files that a verb writes: never over another one by mistake.


OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace the output file if it is there.")


def check_new_file(output: str | None, *, overwrite: bool, read: Iterable[str] = ()) -> None:
    """Refuses to write over a file: a protocol or a release that is lost cannot be had again.

    Args:
        output: What is to be written, if anything.
        overwrite: Whether a file may be replaced.
        read: Files that are read or charged, and must never be replaced.
    """
    if output is not None and any(Path(output).resolve() == Path(name).resolve() for name in read):
        raise click.UsageError(f"the output must be another file than those that are used, got {output}")
    if output is not None and Path(output).exists() and not overwrite:
        raise click.UsageError(
            f"the output must be a new file, got {output}; name another, or pass --overwrite"
        )
