"""Verbs that are imported when they are called, so that `armslength --help` answers at once."""

from importlib import import_module
from typing import Any

import click

from armslength.cli.exit_codes import CleanErrors


class LazyGroup(CleanErrors):
    """A group that knows its verbs by name, module and one line of help.

    Args:
        verbs: (name, module that holds a command of that name, short help), in the order in which they are listed.
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
