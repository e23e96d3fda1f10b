"""What a message can read, as templates, from the expression that makes it; read by `ast`, nothing of it is run."""  # noqa: INP001  # beside the scripts that use it

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from error_words import UNWRAPPED, words

from armslength import errors

SOURCE = Path(errors.__file__).parent
_SAFE = {"repr": repr, "str": str, "tuple": tuple, "sorted": sorted, "float": float}
Text = tuple[str, frozenset[str]]


@dataclass(frozen=True)
class Scope:
    """What names mean at one place: in a file, a function, and for the arguments of a call that was followed."""

    module: str
    function: ast.FunctionDef | None = None
    bound: dict[str, tuple[ast.expr, "Scope"]] = field(default_factory=dict)
    is_followed: bool = False


@cache
def tree(module: str) -> ast.Module:
    """A file of the package, by its path in the package's folder."""
    return ast.parse((SOURCE / module).read_text(encoding="utf-8"))


def calls(
    node: ast.AST, function: ast.FunctionDef | None
) -> Iterator[tuple[ast.Call, ast.FunctionDef | None]]:
    """All calls below, with the function that they stand in."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Call):
            yield inner, function
        yield from calls(inner, inner if isinstance(inner, ast.FunctionDef) else function)


def texts(expression: ast.expr, scope: Scope) -> list[Text]:  # noqa: PLR0911  # one case for each kind of expression
    """What an expression can read, with the expressions behind its placeholders."""
    if isinstance(expression, ast.JoinedStr):
        return _joined([texts(part, scope) for part in expression.values])
    if isinstance(expression, ast.FormattedValue):
        known = _values(expression.value, scope)
        if known and isinstance(expression.format_spec, ast.JoinedStr):
            return [(format(known[0], ast.literal_eval(expression.format_spec.values[0])), frozenset())]
        return _inline(texts(expression.value, scope), expression.value)
    if isinstance(expression, ast.IfExp):
        return [*texts(expression.body, scope), *texts(expression.orelse, scope)]
    if isinstance(expression, ast.BinOp) and isinstance(expression.op, ast.Add) and _is_text(expression):
        return _joined([texts(expression.left, scope), texts(expression.right, scope)])
    known = _values(expression, scope)
    if known:
        return [(str(each), frozenset()) for each in known]
    followed = _followed(expression, scope)
    if followed:
        return followed
    return [(f"{{{words(expression)}}}", frozenset([ast.unparse(expression)]))]


def _joined(parts: list[list[Text]]) -> list[Text]:
    return [
        ("".join(text for text, _ in choice), frozenset().union(*(shown for _, shown in choice)))
        for choice in product(*parts)
    ]


def _inline(choices: list[Text], expression: ast.expr) -> list[Text]:
    """Two choices in the middle of a message are one template: [what may be missing], (one|other)."""
    if not isinstance(expression, (ast.IfExp, ast.Name)) or len(choices) != 2:
        return choices
    (one, first), (other, second) = choices
    if "" in (one, other):
        return [(f"[{one or other}]", first | second)]
    return [(f"({one}|{other})", first | second)] if len(one) + len(other) < 60 else choices


def _followed(expression: ast.expr, scope: Scope) -> list[Text] | None:  # noqa: PLR0911  # the same
    """The texts behind a name, a call without arguments, or a `format`."""
    if isinstance(expression, ast.Name):
        if expression.id in scope.bound:
            value, there = scope.bound[expression.id]
            return texts(value, there)
        if expression.id == "problem" and "canonical_text" in _imported(scope.module):
            return [
                text
                for call, function in calls(tree("randomness/text.py"), None)
                if isinstance(call.func, ast.Name) and call.func.id == "ValueError"
                for text in texts(call.args[0], Scope("randomness/text.py", function))
            ]
        assigned = [value for value in _assigned(expression.id, scope) if _is_text(value)]
        return [text for value in assigned for text in texts(value, scope)] or None
    if not isinstance(expression, ast.Call):
        return None
    if isinstance(expression.func, ast.Attribute) and expression.func.attr == "format":
        choices = [texts(argument, scope)[0] for argument in expression.args]
        pattern = _values(expression.func.value, scope)[0]
        return [(pattern.format(*(text for text, _ in choices)), frozenset().union(*(s for _, s in choices)))]
    if (
        isinstance(expression.func, ast.Name)
        and expression.func.id not in UNWRAPPED
        and not scope.is_followed
    ):
        return _returned(expression.func.id, scope.module)
    return None


def _returned(name: str, module: str) -> list[Text] | None:
    """What a function of ours returns, if that is text."""
    home, name = _imported(module).get(name, (module, name))
    for each in ast.walk(tree(home)):
        if isinstance(each, ast.FunctionDef) and each.name == name:
            inside = Scope(home, each, is_followed=True)
            returns = [
                found.value for found in ast.walk(each) if isinstance(found, ast.Return) and found.value
            ]
            return [
                text
                for value in returns
                if _is_text(value) or _values(value, inside)
                for text in texts(value, inside)
            ] or None
    return None


def _is_text(expression: ast.expr) -> bool:
    if isinstance(expression, ast.IfExp):
        return _is_text(expression.body) and _is_text(expression.orelse)
    if isinstance(expression, ast.BinOp):
        return _is_text(expression.left) or _is_text(expression.right)
    return isinstance(expression, ast.JoinedStr) or (
        isinstance(expression, ast.Constant) and isinstance(expression.value, str)
    )


def _assigned(name: str, scope: Scope) -> list[ast.expr]:
    """The expressions that are assigned to a name in the function, or else in the file."""
    for place in (scope.function, tree(scope.module)):
        nodes = (
            list(ast.walk(place)) if isinstance(place, ast.FunctionDef) else list(place.body if place else [])
        )
        found = [
            value
            for each in nodes
            if isinstance(each, (ast.Assign, ast.AnnAssign))
            for target, value in _pairs(each)
            if isinstance(target, ast.Name) and target.id == name
        ]
        if found:
            return found
    return []


def _pairs(assignment: ast.Assign | ast.AnnAssign) -> list[tuple[ast.expr, ast.expr]]:
    """(target, value) of an assignment, of each part where both sides are tuples."""
    if assignment.value is None:
        return []
    target = assignment.targets[0] if isinstance(assignment, ast.Assign) else assignment.target
    if isinstance(target, ast.Tuple) and isinstance(assignment.value, ast.Tuple):
        return list(zip(target.elts, assignment.value.elts, strict=True))
    return [(target, assignment.value)]


@cache
def _imported(module: str) -> dict[str, tuple[str, str]]:
    """(file, name) of what a file imports from others of ours."""
    found = {}
    for each in ast.walk(tree(module)):
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("armslength."):
            home = (each.module or "").removeprefix("armslength.").replace(".", "/") + ".py"
            if (SOURCE / home).exists():
                found.update({alias.asname or alias.name: (home, alias.name) for alias in each.names})
    return found


def _values(expression: ast.expr, scope: Scope) -> list[Any]:
    """The constant that an expression is, or those that a loop over a constant gives it; none if that is not known."""
    if isinstance(expression, ast.Name) and scope.function is not None:
        for each in ast.walk(scope.function):
            if isinstance(each, ast.For) and ast.unparse(each.target).endswith(f", {expression.id})"):
                listed = each.iter.func if isinstance(each.iter, ast.Call) else None
                if isinstance(listed, ast.Attribute) and listed.attr == "items":
                    return [value for found in _values(listed.value, scope) for value in found.values()]
    own = {each.id for each in ast.walk(expression) if isinstance(each, ast.Name)} - set(_SAFE)
    own -= {
        each.target.id
        for each in ast.walk(expression)
        if isinstance(each, ast.comprehension) and isinstance(each.target, ast.Name)
    }
    names: dict[str, Any] = {}
    for name in own:
        value = _constant(name, scope)
        if value is None:
            return []
        names[name] = value
    try:
        code = compile(ast.Expression(expression), scope.module, "eval")
        value = eval(code, {"__builtins__": _SAFE, **names})  # noqa: S307  # constants of our own source
    except Exception:  # noqa: BLE001  # whatever is no constant
        return []
    return [value]


def _constant(name: str, scope: Scope) -> Any:
    """The value of a name that stands for a constant; None for any other."""
    if name in scope.bound:
        value, there = scope.bound[name]
        return next(iter(_values(value, there)), None)
    if not name.strip("_").isupper() and not scope.bound:
        return None  # a variable
    home, original = _imported(scope.module).get(name, (scope.module, name))
    inside = scope if home == scope.module else Scope(home)
    assigned = _assigned(original, inside)
    if len(assigned) != 1 or isinstance(assigned[0], ast.JoinedStr):
        return None
    return next(iter(_values(assigned[0], inside)), None)
