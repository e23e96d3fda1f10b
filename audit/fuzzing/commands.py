"""What people see: hostile labels, units and names of files through the command, its listings and its page; folders of files."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from audit.fuzzing.mutate import change_json
from audit.fuzzing.verdicts import Finding, Target
from audit.fuzzing.workspace import LIMIT, folder

_VERBS = (
    ("inspect",),
    ("inspect", "--format", "json"),
    ("inspect", "--format", "csv"),
    ("compare",),
    ("compare", "--format", "json"),
    ("nearest",),
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
        labels, unit, name = names["labels"], names["unit"], names["file"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return "no names"
    if not isinstance(name, str) or "/" in name or name in {"", ".", ".."}:
        return "no names"
    protocol = al.Protocol(al.SparseJL(6, 8, 2, "x"), 1, unit=unit, contribution=2)
    if not isinstance(labels, list):
        return "no names"
    rows = np.zeros((len(labels), 6), dtype=int)
    sketches = protocol.release(rows, ledger=al.NO_LEDGER, labels=labels)
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
    return [json.dumps([["a.parquet", "sketches"], ["b/c.parquet", "sketches"], ["_d", "garbage"]]).encode()]


def _read_folder(data: bytes) -> str:
    """A folder with such files, as a collection; nothing outside of it is read."""
    place = folder() / "collection"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        for name, kind in json.loads(data):
            path = place / name
            if ".." in path.parts or place not in path.parents:
                return "no folder"
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "sketches":
                _small().save(path)
            elif kind == "link":
                path.symlink_to(place.parent)
            elif kind == "pipe":
                os.mkfifo(path)
            else:
                path.write_bytes(str(kind).encode(errors="replace"))
    except (ValueError, TypeError, OSError, RecursionError, al.ParameterError):
        return "no folder"
    collection = al.open_collection(place, limit=LIMIT)
    if any(place not in Path(file.path).parents for file in collection.files):
        raise Finding("a collection has a file from elsewhere")
    if len(collection.to_sketches()) != len(collection):
        raise Finding("a collection has other rows than it says")
    return "accepted"


def _small() -> al.Sketches:
    protocol = al.Protocol(al.SparseJL(6, 8, 2, "x"), 1)
    return protocol.release(np.zeros((1, 6), dtype=int), ledger=al.NO_LEDGER, labels=["a"])


TARGETS = (
    Target("labels, units and files in commands", _seeds, _read, change_json, 1_000),
    Target("folders of files", _folders, _read_folder, change_json, 10_000),
)
