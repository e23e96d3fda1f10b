"""Files that appear whole or not at all, reading up to a size limit, and canonical JSON."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from armslength.errors import CorruptFileError, MissingFileError, ParameterError

LARGEST_SAFE_INTEGER = 2**53 - 1


@contextmanager
def atomic_write(path: str | os.PathLike[str], *, new: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to. It gets its name in one step when the block ends without an error.

    With `new`, a name that another file has by then is refused; otherwise that file is replaced.
    """
    target = Path(path)
    if os.path.isdir(target):
        raise ParameterError(f"{target} is a folder; name a file")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except (OSError, ValueError) as problem:
        raise ParameterError(f"cannot write {target}: {_reason(problem)}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files for the owner alone; a published sketch is for others to read
        os.chmod(name, 0o644)  # noqa: PTH101  # the name is a plain string
        if new:
            _rename_to_new(name, target)
        else:
            os.replace(name, target)  # noqa: PTH105  # the same
        _sync_folder(target.parent)
    except BaseException as problem:
        with suppress(OSError):
            os.unlink(name)  # noqa: PTH108  # the same
        if new and isinstance(problem, FileExistsError):
            raise ParameterError(f"somebody else has just made {target}; look at that file first") from None
        if isinstance(problem, OSError):
            raise ParameterError(f"cannot write {target}: {problem.strerror or problem}") from None
        raise


def check_can_write(path: str | os.PathLike[str]) -> None:
    """Refuses a path where `atomic_write` would fail to begin. Leaves nothing behind."""
    with suppress(_TrialEnd), atomic_write(path):
        raise _TrialEnd


def read_limited(path: str | os.PathLike[str], limit: int, name: str) -> bytes:
    """The bytes of a file, if it is there and no larger than the limit."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise MissingFileError(f"no such file: {os.fspath(path)}") from None
    except (OSError, ValueError) as problem:
        raise ParameterError(f"cannot read {os.fspath(path)}: {_reason(problem)}") from None
    if len(data) > limit:
        raise CorruptFileError(f"{os.fspath(path)} is too large: {name} has at most {limit} bytes")
    return data


def canonical_json(document: Any) -> bytes:
    """The one JSON text of a document of objects, lists, strings, booleans, null and integers.

    RFC 8785: keys sorted by their UTF-16 code units, no white space, UTF-8. Our documents store floats as strings, so the format of numbers never matters.
    """
    return json.dumps(_canonical(document), separators=(",", ":"), ensure_ascii=False).encode()


def read_json(data: bytes, name: str) -> Any:
    """The document in the bytes. Refuses duplicate keys, NaN, and everything else that is not JSON."""
    try:
        return json.loads(data.decode(), object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except (ValueError, RecursionError):
        raise CorruptFileError(f"{name} is not valid JSON") from None


def _rename_to_new(name: str, target: Path) -> None:
    """Renames the file unless the target exists; a rename alone would replace it."""
    try:
        os.link(name, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: reserve the name first
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        try:
            os.replace(name, target)  # noqa: PTH105  # the name is a plain string
        except BaseException:
            target.unlink()
            raise
    else:
        os.unlink(name)  # noqa: PTH108  # the same


class _TrialEnd(Exception):  # noqa: N818  # no error: it ends the trial
    """Ends a trial before the file takes its name."""


def _sync_folder(folder: Path) -> None:
    """Makes the rename survive a power failure, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(problem: OSError | ValueError) -> str:
    """Why a file cannot be opened. A name that no file can have is a ValueError."""
    return (problem.strerror if isinstance(problem, OSError) else None) or "no name of a file"


def _canonical(value: Any) -> Any:
    """The value with the keys of all objects in their order."""
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("keys of a canonical document are strings")
        return {key: _canonical(value[key]) for key in sorted(value, key=lambda key: key.encode("utf-16-be"))}
    if isinstance(value, (list, tuple)):
        return [_canonical(inner) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > LARGEST_SAFE_INTEGER:
        raise TypeError("integers of a canonical document stay below 2^53")
    if not (value is None or isinstance(value, (str, bool, int))):
        raise TypeError(f"a canonical document has no {type(value).__name__}")
    return value


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise ValueError("duplicate key")
    return document


def _no_constants(name: str) -> Any:
    raise ValueError(name)
