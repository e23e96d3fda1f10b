"""A folder where inputs become files, and limits that keep one input to milliseconds: the same options that users have."""

import atexit
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unittest import mock

from armslength.ledger import budgets
from armslength.privacy import composition
from armslength.privacy.composition import Guarantee, Loss, compose
from armslength.transforms import hadamard_jl, sparse_jl, transform

LIMIT = 2**24  # bytes that a file may unpack to
# The largest matrices here, so that one takes milliseconds; files from elsewhere may ask for seconds.
_SIZES: tuple[tuple[Any, str, int], ...] = (
    (transform, "LARGEST_DENSE", 2**16),
    (hadamard_jl, "LARGEST_PADDED_DIM", 2**16),
    (hadamard_jl, "LARGEST_SAMPLE", 2**12),
    (sparse_jl, "LARGEST_DEALT", 2**16),
    (sparse_jl, "LARGEST_SPARSITY", 2**6),
)


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


@contextmanager
def small_matrices() -> Iterator[None]:
    """Inside, transforms are limited to sizes that take milliseconds."""
    with ExitStack() as stack:
        for module, name, value in _SIZES:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


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
