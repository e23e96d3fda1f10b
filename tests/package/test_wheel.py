"""The wheel: built, installed into an empty folder, and used from there."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--target", str(folder), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def run(installed, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=installed,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "armslength/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("armslength/", "armslength-")) for name in names)
    assert not [name for name in names if "test" in name]


def test_the_installed_package_works(installed):
    code = "import armslength as al; print(al.__file__); print(al.SparseJL(input_dim=10, sketch_dim=4, seed='x').apply([[1] * 10]).sum())"
    where, total = run(installed, "-c", code).splitlines()
    assert where.startswith(str(installed))
    assert total.lstrip("-").isdigit()


def test_the_command_and_the_module_say_their_version(installed):
    version = run(installed, "-c", "import armslength; print(armslength.__version__)")
    assert run(installed, "-m", "armslength", "--version") == f"armslength, version {version}"
    assert (
        run(installed, str(installed / "bin" / "armslength"), "--version") == f"armslength, version {version}"
    )
