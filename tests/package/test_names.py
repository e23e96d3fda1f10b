"""The public names: frozen, sorted, and loaded only when they are used."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import armslength

NAMES = [
    "ArmslengthError",
    "Arrays",
    "BudgetError",
    "Counts",
    "Estimate",
    "FastJL",
    "FormatError",
    "GaussianJL",
    "HadamardJL",
    "Identity",
    "IncompatibleSketchesError",
    "InputError",
    "ItemGroups",
    "Ledger",
    "NO_LEDGER",
    "NotResolvableError",
    "ParameterError",
    "Plan",
    "Protocol",
    "SignJL",
    "Sketches",
    "Source",
    "SparseJL",
    "Votes",
    "__version__",
    "cluster",
    "compare",
    "concat",
    "distances",
    "drift",
    "explain",
    "inner_products",
    "load",
    "nearest",
    "outliers",
    "plan",
    "record_items",
    "release",
    "report",
    "similarities",
    "sketch_in_clear",
    "squared_distances",
    "squared_norms",
    "stream",
    "totals",
    "verify",
]


def test_names_are_these_and_sorted():
    assert armslength.__all__ == NAMES
    assert sorted(armslength.__all__) == armslength.__all__


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_there(name):
    assert getattr(armslength, name) is not None
    assert name in dir(armslength)


def test_the_directory_has_public_names_only():
    assert dir(armslength) == NAMES
    assert "import_module" not in dir(armslength)


def test_no_public_name_is_a_module_after_every_module_is_imported():
    # A module of the package that is called like a public name would replace it when it is imported.
    optional = ("pyspark", "sklearn", "pandas", "matplotlib")
    shadowed = run(
        f"""
import importlib, pkgutil, types, armslength
for module in pkgutil.walk_packages(armslength.__path__, "armslength."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except ImportError as missing:
        assert missing.name.split(".")[0] in {optional}, missing
print([name for name in armslength.__all__ if isinstance(getattr(armslength, name), types.ModuleType)])
print(dir(armslength) == armslength.__all__)
"""
    )
    assert shadowed.split("\n")[:2] == ["[]", "True"]


def test_lazy_names_are_the_public_ones():
    assert set(armslength._HOME) | {"__version__"} == set(NAMES)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        armslength.nonsense  # noqa: B018  # the access is the test


def test_every_error_has_one_root():
    for name in NAMES:
        if name.endswith("Error"):
            assert issubclass(getattr(armslength, name), armslength.ArmslengthError)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    loaded = run("import sys, armslength; print(' '.join(sys.modules))").split()
    assert not {"numpy", "scipy", "numba", "pyarrow", "flint", "cryptography", "click"} & set(loaded)


def test_scipy_stats_stays_out_of_the_package():
    # It takes half a second to import.
    for path in Path(armslength.__file__).parent.rglob("*.py"):
        assert not re.search(
            r"scipy\.stats|from scipy import .*\bstats\b", path.read_text(encoding="utf-8")
        ), path
