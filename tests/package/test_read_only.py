"""An installation that nobody may write to: kernels are compiled in each process, and everything works."""

import subprocess
import sys

CODE = """
import numba.core.caching as caching

class Nowhere(caching.FunctionCache):
    def __init__(self, function):
        raise RuntimeError("cannot cache function: no locator available")

import numba.core.dispatcher as dispatcher
dispatcher.FunctionCache = Nowhere
import armslength as al
print(al.SparseJL(input_dim=10, sketch_dim=4, seed="x").apply([[1] * 10]).shape)
"""


def test_without_a_folder_for_the_cache():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "(1, 4)"
