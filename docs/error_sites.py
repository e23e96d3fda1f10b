"""Every place in the source where an error of ours is made, with its message as a template; read by `ast`, nothing is run."""  # noqa: INP001  # beside the scripts that use it

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from error_templates import SOURCE, Scope, calls, texts, tree

from armslength import errors

_OURS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
_CLICKS = {"UsageError", "BadParameter"}
_CHECKS = {"integer", "number", "one_of"}  # of checks.py, which make messages for whoever calls them


@dataclass(frozen=True)
class Site:
    """One message.

    Attributes:
        error: The class.
        message: The template, its placeholders in braces; what may be missing stands in brackets.
        module: The file, from the package's folder.
        shown: The expressions behind the placeholders, as the source has them.
    """

    error: str
    message: str
    module: str
    shown: frozenset[str]


def sites() -> list[Site]:
    """All of them, sorted."""
    found: set[Site] = set()
    for path in sorted(SOURCE.rglob("*.py")):
        module = str(path.relative_to(SOURCE))
        for call, function in calls(tree(module), None):
            found.update(_of_call(call, Scope(module, function)))
    return sorted(found, key=lambda site: (site.message.lower(), site.error, site.module))


def _of_call(call: ast.Call, scope: Scope) -> Iterator[Site]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _CLICKS:
        name = f"click.{call.func.attr}"
    elif (
        isinstance(call.func, ast.Call)
        and isinstance(call.func.func, ast.Name)
        and call.func.func.id == "type"
    ):
        name = "ArmslengthError"  # another error of the same kind
    elif name in _CHECKS and scope.module != "checks.py":
        yield from _of_check(name, call, scope)
        return
    elif name not in _OURS:
        return
    if call.args:
        for message, shown in texts(call.args[0], scope):
            yield Site(name, message, scope.module, frozenset(shown))


def _of_check(name: str, call: ast.Call, scope: Scope) -> Iterator[Site]:
    """The message of a shared check with the arguments of this call."""
    checks = tree("checks.py")
    function = next(each for each in checks.body if isinstance(each, ast.FunctionDef) and each.name == name)
    given = dict(zip((each.arg for each in function.args.args), call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg}
    inside = Scope(
        "checks.py", function, {key: (value, scope) for key, value in given.items() if key != "value"}
    )
    raised = next(each for each in ast.walk(function) if isinstance(each, ast.Raise))
    for site in _of_call(raised.exc, inside) if isinstance(raised.exc, ast.Call) else ():
        yield Site(site.error, site.message, scope.module, site.shown)
