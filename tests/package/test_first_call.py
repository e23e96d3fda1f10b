"""The first call compiles, and says so to whoever sits at a terminal; the second process finds it done."""

import os
import subprocess
import sys

import pytest

SMALL_RELEASE = (
    "import numpy as np, armslength as al\n"
    "protocol = al.Protocol(al.SparseJL(input_dim=20, sketch_dim=8, seed='x'), epsilon=1)\n"
    "al.release(protocol, np.ones((2000, 20), dtype=int), ledger=al.NO_LEDGER)\n"
)


def on_a_terminal(environment):
    """What a terminal shows of a small release."""
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    reader, writer = pty.openpty()
    subprocess.run([sys.executable, "-c", SMALL_RELEASE], stderr=writer, env=environment, check=True)
    os.close(writer)
    shown = b""
    while True:
        try:
            part = os.read(reader, 1000)
        except OSError:
            part = b""
        if not part:
            os.close(reader)
            return shown.decode()
        shown += part


def test_a_note_on_the_terminal_once(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert on_a_terminal(environment).count("compiling for this machine") == 1
    assert on_a_terminal(environment) == ""


def test_no_note_where_nobody_looks(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SMALL_RELEASE], env=environment, check=True, capture_output=True
    )
    assert done.stderr == b""


def test_functions_of_others_are_compiled_in_peace():
    script = (
        "import numba, armslength as al\n"
        "al.SparseJL(input_dim=8, sketch_dim=4)\n"
        "names = {}\n"
        "exec('def f(x): return x + 1', names)\n"
        "print(numba.njit(names['f'])(1))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("2\n", "")
