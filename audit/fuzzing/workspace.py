"""A folder where inputs become files, and limits that keep one input to milliseconds: the same options that users have."""

import atexit
import shutil
import tempfile
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from armslength.ledger import budgets
from armslength.privacy import composition
from armslength.privacy.composition import Guarantee, Loss, compose

LIMIT = 2**24  # bytes that a file may unpack to
WORK = 10**7  # that protocols may ask for: about ten milliseconds


@cache
def folder() -> Path:
    """The folder of this process, gone at its end."""
    made = Path(tempfile.mkdtemp(prefix="armslength-fuzzing-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def written(name: str, data: bytes) -> Path:
    """A file with this input."""
    path = folder() / name
    path.write_bytes(data)
    return path


def remember_compositions() -> None:
    """What the lines of a ledger compose to is a pure function that takes milliseconds: it is remembered."""
    known = lru_cache(20_000)(compose)

    def remembered(losses: Iterable[Loss], delta: Fraction) -> Guarantee | None:
        return known(tuple(losses), delta)

    settings: tuple[tuple[Any, str, Any], ...] = (
        (composition, "compose", remembered),
        (budgets, "compose", remembered),
    )
    for module, name, value in settings:
        if not hasattr(module, name):
            raise AttributeError(f"{module.__name__} has no {name}")
        setattr(module, name, value)
