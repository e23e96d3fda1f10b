"""Reading a file runs nothing that stands in it: no module that could is used, and no type or engine brings its own."""

import ast
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.ingest import engine

SOURCE = Path(al.__file__).parent
MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "subprocess",
    "ctypes",
    "code",
    "runpy",
}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "system",
    "popen",
    "load_extension",
    "enable_load_extension",
    "install_extension",
}
# What starts a program of ours, and what a driver sends to its own tasks: neither reads a file.
ALLOWED = {("demo.py", "subprocess"), ("spark/tasks.py", "pickle")}


def used(tree):
    """Names of modules and calls in a file that could run what they are given."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                (alias.name.split(".")[0]) for alias in node.names if alias.name.split(".")[0] in MODULES
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.Call):
            called = node.func
            plain = called.id if isinstance(called, ast.Name) else ""
            method = called.attr if isinstance(called, ast.Attribute) else ""
            owner = (
                called.value.id
                if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name)
                else ""
            )
            if (
                plain in CALLS
                or (method in CALLS and owner != "re")
                or (owner in {"np", "numpy"} and method == "load")
            ):
                yield plain or method
            yield from (word.arg for word in node.keywords if word.arg == "allow_pickle")


def test_no_module_can_run_what_it_reads():
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        for name in used(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == ALLOWED


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from yaml import load",
        "eval(x)",
        "np.load(x)",
        "f(allow_pickle=True)",
        "c.load_extension(x)",
        "os.system(x)",
    ],
)
def test_the_search_finds_what_it_looks_for(text):
    assert list(used(ast.parse(text)))


class Foreign(pa.ExtensionType):
    """A type that carries a program, under the name that old readers unpickled."""

    def __init__(self):
        super().__init__(pa.int64(), "arrow.py_extension_type")

    def __arrow_ext_serialize__(self):
        return b"cos\nsystem\n(S'exit'\ntR."

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        raise AssertionError(storage_type, serialized)


def foreign_table():
    person = pa.ExtensionArray.from_storage(Foreign(), pa.array([1, 2]))
    return pa.table({"person": person, "item": ["a", "b"]})


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_extension_types_are_not_brought_to_life(ending, tmp_path):
    path, table = tmp_path / f"events.{ending}", foreign_table()
    if ending == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=8, sparsity=2, seed="x"), al.Counts(2), epsilon=1, unit="one patient"
    )
    released = al.release(protocol, path, person="person", item="item", label="a", ledger=al.NO_LEDGER)
    assert len(released) == 1  # as the integers that they are stored as


def test_the_engine_installs_and_loads_nothing():
    settings = {name: engine._SETTINGS[name] for name in engine._SETTINGS if "known_extensions" in name}
    assert settings == {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    with duckdb.connect(":memory:", config=dict(engine._SETTINGS)) as connection, pytest.raises(duckdb.Error):
        connection.sql("SELECT * FROM read_csv('http://127.0.0.1:9/a.csv')").fetchall()
