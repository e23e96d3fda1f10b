"""What people see: hostile labels, units and names of files through the command, its listings and its page; folders of files."""

import json
import os
import shutil
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.sketches.sketch_file import list_files
from audit.fuzzing.mutate import change_json
from audit.fuzzing.verdicts import Finding, Target
from audit.fuzzing.workspace import LIMIT, folder

_VERBS = (
    ("show",),
    ("show", "--format", "json"),
    ("show", "--format", "csv"),
    ("compare",),
    ("compare", "--format", "json"),
    ("cluster",),
    ("report", "-o", "report.html"),
)
_CODES = {0, 2, 3, 5}


def _seeds() -> list[bytes]:
    names = {"labels": ["north", "south", "ea<b>st"], "unit": "one patient", "file": "a.parquet"}
    return [json.dumps(names).encode()]


def _read(data: bytes) -> str:
    """Releases rows under these labels, and runs every verb on their file."""
    try:
        names = json.loads(data)
    except (ValueError, RecursionError):
        return "no names"
    if not isinstance(names, dict):
        return "no names"
    labels, unit = names.get("labels", ["a"]), names.get("unit", "one patient")
    name = _name_of(names.get("file"))
    labels = labels if isinstance(labels, list) else [labels]
    protocol = al.Protocol(
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), al.Counts(2), epsilon=1, unit=unit
    )
    rows = np.zeros((len(labels), 6), dtype=int)
    sketches = al.release(protocol, rows, ledger=al.NO_LEDGER, labels=labels)
    place = folder() / "command"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    sketches.save(place / name)
    before = Path.cwd()
    os.chdir(place)
    try:
        for verb, *options in _VERBS:
            _run([verb, *options, "--", name])
        _check_page(place, name, labels)
    finally:
        os.chdir(before)
    return "accepted"


def _name_of(value: Any) -> str:
    """A name that a file in a folder can be asked to have."""
    name = (value if isinstance(value, str) else json.dumps(value)).replace("/", "_")
    return name if name not in {"", ".", ".."} else "a.parquet"


def _run(arguments: list[str]) -> None:
    result = CliRunner().invoke(main, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code not in _CODES:
        raise Finding(f"{arguments[0]} ended with {result.exit_code}")
    if not all(line.isprintable() for line in result.output.split("\n")):
        raise Finding(f"{arguments} printed what a terminal acts on")


def _check_page(place: Path, name: str, labels: list[str]) -> None:
    made = {path.name for path in place.iterdir()} - {name}
    if not made <= {"report.html"}:
        raise Finding(f"a verb wrote {sorted(made)}")
    page = (place / "report.html").read_text(encoding="utf-8") if "report.html" in made else ""
    if any("<" in label and label in page for label in labels if len(label) > 3):
        raise Finding("a label stands in the page as markup")


def _folders() -> list[bytes]:
    listed = (
        [["a.parquet", "sketches"], ["b/c.parquet", "sketches"], ["_d", "garbage"]],
        [["a.parquet", "sketches"], ["_b", "link"], ["_c", "pipe"]],
    )
    return [json.dumps(each).encode() for each in listed]


def _read_folder(data: bytes) -> str:
    """A folder with such files; nothing outside of it is read."""
    place = folder() / "files"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        listed = json.loads(data)
    except (ValueError, RecursionError):
        return "no folder"
    for each in listed if isinstance(listed, list) else [listed]:
        name, kind = each if isinstance(each, list) and len(each) == 2 else [each, "sketches"]
        with suppress(OSError, ValueError, al.ParameterError):  # there cannot be such a file
            _make(place, [_name_of(part) for part in str(name).split("/")], kind)
    files = list_files(place)
    if any(place not in file.parents for file in files):
        raise Finding("a folder has a file from elsewhere")
    if len(al.load(place, limit=LIMIT)) != len(files):  # one row each
        raise Finding("a folder has other rows than its files")
    return "accepted"


def _make(place: Path, parts: list[str], kind: Any) -> None:
    path = place.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):  # a pipe would wait for somebody who reads
        return
    if kind == "sketches":
        path.write_bytes(_small())
    elif kind == "link":
        path.symlink_to(place.parent)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_bytes(str(kind).encode(errors="replace"))


@cache
def _small() -> bytes:
    protocol = al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
    path = folder() / "small.parquet"
    al.release(protocol, np.zeros((1, 6), dtype=int), ledger=al.NO_LEDGER, labels=["a"]).save(path)
    return path.read_bytes()


TARGETS = (
    Target("names", "labels, units and files in commands", _seeds, _read, change_json, 2_000),
    Target("folders", "folders of files", _folders, _read_folder, change_json, 10_000),
)
