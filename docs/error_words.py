"""Readable names for what stands in the braces of a message."""  # noqa: INP001  # beside the scripts that use it

import ast

UNWRAPPED = {
    "shown",
    "printable",
    "str",
    "float",
    "repr",
    "fspath",
    "sorted",
    "readable",
    "percent",
    "described",
}
UNWRAPPED |= {"join", "Path", "map", "min"}
_SIGNS = {ast.Sub: "−", ast.Mult: "·", ast.Div: "/", ast.Pow: "^", ast.Add: "+"}
_WORDS = {  # for names that say little by themselves
    "again": "label",
    "at_least": "least",
    "at_most": "most",
    "best": "configuration",
    "checked": "rows",
    "confidence": "level",
    "d": "input_dim",
    "decimal": "epsilon",
    "differing": "fields",
    "done": "read or written",
    "fixed input dim − 1": "input_dim − 1",
    "folder / name": "path",
    "found": "number of columns",
    "got": "other",
    "inf": "infinity",
    "k": "sketch_dim",
    "kind": "type",
    "leaves": "number of rows",
    "listed": "choices",
    "low": "distance",
    "max": "the largest float",
    "meaning": "so many numbers",
    "named": "names of fields",
    "ndim": "number of dimensions",
    "number of numbers": "number of rows",
    "number of other": "number of the other's rows",
    "number of shape": "number of dimensions",
    "number of side": "number of rows",
    "offers": "what would be enough",
    "problem": "reason",
    "s": "sparsity",
    "self": "rows",
    "shape[1]": "number of columns",
    "shown_kind": "type",
    "strerror": "the system's words",
    "there": "labels",
    "unidata_version": "version",
}


def words(expression: ast.expr) -> str:
    """A readable name for what an expression shows."""
    found = _words(expression)
    return _WORDS.get(found, found)


def _words(expression: ast.expr) -> str:  # noqa: C901, PLR0911  # one case for each kind of expression
    text = ast.unparse(expression)
    if isinstance(expression, ast.Name):
        return _WORDS.get(expression.id, expression.id.strip("_"))
    if isinstance(expression, ast.Subscript):
        return text if text in _WORDS else _words(expression.value)
    if isinstance(expression, ast.BoolOp):
        return _words(expression.values[0])
    if isinstance(expression, ast.BinOp):
        return f"{_words(expression.left)} {_SIGNS[type(expression.op)]} {_words(expression.right)}"
    if isinstance(expression, ast.UnaryOp):
        return f"−{_words(expression.operand)}"
    if isinstance(expression, ast.GeneratorExp):
        return _words(expression.elt)
    if text.endswith((".__name__", "dtype")) or text.startswith("type_name("):
        return "type"
    if isinstance(expression, ast.Attribute):
        return _WORDS.get(expression.attr, expression.attr.strip("_"))
    if not isinstance(expression, ast.Call):
        return str(getattr(expression, "value", text))
    name = (
        expression.func.attr if isinstance(expression.func, ast.Attribute) else ast.unparse(expression.func)
    )
    if name == "len":
        return f"number of {_words(expression.args[0])}"
    if name in UNWRAPPED:
        return _words(expression.args[-1 if name == "map" else 0])
    return name.strip("_").replace("_", " ")
