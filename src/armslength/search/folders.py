"""The files of a folder that may be sketches."""

import os
from pathlib import Path
from typing import Any

from armslength.checks import is_folder, shown
from armslength.errors import CorruptFileError, ParameterError, printable

_LEFT_OUT = (".", "_")  # how names begin that are no data: files half written, markers of other tools


def paths_of(source: Any) -> list[Path]:
    """The file, or all files of the folder that may be sketches, sorted by their paths."""
    if not isinstance(source, (str, os.PathLike)) or not os.fspath(source):
        raise ParameterError(f"source must be a folder or a list of files, got {shown(source)}")
    top = Path(source)
    if not is_folder(top):
        return [top]
    found = []
    for folder, inner, names in os.walk(top, onerror=_refuse):
        inner[:] = [name for name in inner if not name.startswith(_LEFT_OUT)]
        for name in inner:
            if (Path(folder) / name).is_symlink():
                raise ParameterError(
                    f"folders of a collection must be no links, got {printable(str(Path(folder) / name))}; "
                    "name what it leads to"
                )
        found += [Path(folder) / name for name in names if not name.startswith(_LEFT_OUT)]
    if not found:
        raise ParameterError(
            f"a folder must hold sketch files to be a collection, got none in {printable(str(top))}"
        )
    return sorted(found, key=lambda path: path.parts)


def _refuse(problem: OSError) -> None:
    raise CorruptFileError(f"{printable(str(problem.filename))} must be readable, got: {problem.strerror}")
