"""What options of several verbs look like: ranges of numbers, and lists that stand in a file."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


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
