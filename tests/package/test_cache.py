"""Compiled kernels are cached on disk, and never used after any source of the package has changed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import armslength
from armslength.estimates.distances import squared_differences

PROBE = (
    "import numpy as np\n"
    "from armslength.noise.inversion import add\n"
    "from armslength.noise.inversion import locate\n"
    "locate(np.uint64(2**40))\n"
    "print(sum(locate.stats.cache_hits.values()), sum(locate.stats.cache_misses.values()))\n"
)


def test_processes_that_compile_at_once_do_not_get_the_code_of_each_other(tmp_path, monkeypatch):
    file = squared_differences._cache._cache_file
    monkeypatch.setattr(file, "_cache_path", str(tmp_path))
    monkeypatch.setattr(file, "_index_path", str(tmp_path / "index"))
    file.save("int32", "code for int32")
    late = file._load_index()
    # another process that has not seen this yet saves its own, and its index is the last
    monkeypatch.setattr(file, "_load_index", dict)
    file.save("int64", "code for int64")
    monkeypatch.undo()
    monkeypatch.setattr(file, "_cache_path", str(tmp_path))
    monkeypatch.setattr(file, "_index_path", str(tmp_path / "index"))
    assert file.load("int64") == "code for int64"
    file._save_index(late)  # or the first one's
    assert file.load("int32") == "code for int32"


def test_a_kernel_that_cannot_be_saved_is_used_all_the_same(tmp_path, monkeypatch):
    file = squared_differences._cache._cache_file
    monkeypatch.setattr(file, "_cache_path", str(tmp_path))
    monkeypatch.setattr(file, "_index_path", str(tmp_path / "index"))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(file, "_save_data", full)
    file.save("int32", "code for int32")
    assert file.load("int32") is None


def test_a_change_anywhere_makes_kernels_compile_again(tmp_path):
    copy = tmp_path / "site" / "armslength"
    shutil.copytree(Path(armslength.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def hits_and_misses():
        done = subprocess.run(
            [sys.executable, "-c", PROBE],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert hits_and_misses() == ["0", "1"]
    assert hits_and_misses() == ["1", "0"]
    # `locate` is in inversion.py; its constants are in quantile_tables.py, whose time stamp Numba would not look at.
    tables = copy / "noise" / "quantile_tables.py"
    tables.write_text(tables.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    assert hits_and_misses() == ["0", "1"]
