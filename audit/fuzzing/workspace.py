"""A folder where inputs become files, and limits that keep one input to milliseconds."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from armslength.transforms import base, fast_jl, operator_norm, sparse_jl

LIMIT = 2**24  # bytes that a file may unpack to


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


def lower_limits() -> None:
    """Matrices may be as large as takes milliseconds to scan: the refusals are the same, at smaller sizes."""
    for module, name, value in (
        (base, "LARGEST_DENSE", 2**16),
        (fast_jl, "LARGEST_PUBLISHED", 2**16),
        (sparse_jl, "LARGEST_SCAN", 2**16),
        (operator_norm, "LARGEST_WORK", 2**22),
        (operator_norm, "LARGEST_GRAM", 64),
    ):
        if not hasattr(module, name):
            raise AttributeError(f"{module.__name__} has no {name}")
        setattr(module, name, value)
