"""Every error that we raise on purpose as one line on standard error, and an exit code that scripts can read."""

from typing import Any

import click

from armslength.errors import (
    ArmslengthError,
    BudgetError,
    FormatError,
    IncompatibleSketchesError,
    NotResolvableError,
)

BAD_INPUT, NOT_RESOLVABLE, BUDGET, INCOMPATIBLE = 2, 3, 4, 5
_CODES: tuple[tuple[type[ArmslengthError], int], ...] = (
    (NotResolvableError, NOT_RESOLVABLE),
    (BudgetError, BUDGET),
    (FormatError, INCOMPATIBLE),
    (IncompatibleSketchesError, INCOMPATIBLE),
)


def exit_code(error: ArmslengthError) -> int:
    """The exit code of an error of ours; 2, bad input, where it has none of its own."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), BAD_INPUT)


class CleanErrors(click.Group):
    """A group of commands whose errors are one line; anything else is a bug, and keeps its traceback (exit code 1)."""

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except ArmslengthError as error:
            click.echo(f"armslength: {error}", err=True)
            ctx.exit(exit_code(error))
