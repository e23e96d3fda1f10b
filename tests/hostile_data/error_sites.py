"""Where the source makes errors, and what their messages show; read by `ast`, nothing of it is run."""

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

from armslength import errors

SOURCE = Path(errors.__file__).parent
_CHECKS = {"integer", "number", "one_of"}  # of checks.py: they show the value that they are given


@dataclass(frozen=True)
class Site:
    """A call that makes an error.

    Attributes:
        error: The class.
        module: The file, from the package's folder.
        lines: The lines of the call.
        text: The message, with … for what changes; an expression if it is no literal.
        shown: The expressions that stand for what changes, without white space.
    """

    error: str
    module: str
    lines: range
    text: str
    shown: frozenset[str]


@functools.cache
def sites(places):
    """All sites in these files and folders, as a tuple."""
    return tuple(_sites(places))


def _sites(places):
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        if module.startswith(places):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and call.args and (error := _error(call)):
                    lines, message = range(call.lineno, call.end_lineno + 1), call.args[0]
                    if error in _CHECKS:
                        message = ast.parse(f"short_repr({ast.unparse(call.args[1])})", mode="eval").body
                    yield Site(error, module, lines, _text(message), frozenset(_shown(message, tree)))


def _error(call):
    """The class of the error that a call makes, the check that makes one, or nothing."""
    if isinstance(call.func, ast.Name):
        return call.func.id if call.func.id.endswith("Error") or call.func.id in _CHECKS else ""
    is_same_kind = isinstance(call.func, ast.Call) and ast.unparse(call.func.func) == "type"
    return "ArmslengthError" if is_same_kind else ""  # another error of the same kind


def _text(message):
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    return "".join(
        part.value
        if isinstance(part, ast.Constant)
        else "…"
        if isinstance(part, ast.FormattedValue)
        else ast.unparse(part)
        for part in parts
    )


def _shown(expression, tree):
    """What an expression shows; for a name or a function of the file that is always text, what that text shows."""
    if isinstance(expression, ast.Constant) or ast.unparse(expression).strip("_").isupper():
        return  # a constant, or the name of one
    if isinstance(expression, ast.JoinedStr):
        inner = [part.value for part in expression.values if isinstance(part, ast.FormattedValue)]
    elif isinstance(expression, ast.IfExp):
        inner = [expression.body, expression.orelse]
    elif isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add):
        inner = [expression.left, expression.right]
    else:
        inner = list(_behind(expression, tree))
        if not inner or not all(map(_is_text, inner)):
            inner = []
            yield "".join(ast.unparse(expression).split())
    for each in inner:
        yield from _shown(each, tree)


def _behind(expression, tree):
    """What is assigned to a name anywhere in the file, or returned by a function of the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == ast.unparse(expression):
            yield node.value
        if isinstance(node, ast.FunctionDef) and ast.unparse(expression).startswith(f"{node.name}("):
            yield from (each.value for each in ast.walk(node) if isinstance(each, ast.Return))


def _is_text(expression):
    if isinstance(expression, ast.IfExp):
        return _is_text(expression.body) or _is_text(expression.orelse)
    if isinstance(expression, ast.BinOp):
        return _is_text(expression.left) or _is_text(expression.right)
    is_string = isinstance(expression, ast.Constant) and isinstance(expression.value, str)
    return is_string or isinstance(expression, ast.JoinedStr)
