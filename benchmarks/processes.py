"""What needs a process of its own: how long a start takes, and how much memory a release holds."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

_SMALL_RELEASE = """
    import time
    start = time.perf_counter()
    import numpy as np
    import armslength as al
    protocol = al.Protocol(al.SparseJL(input_dim=1000, sketch_dim=256, sparsity=4, seed="bench"), al.Arrays(resolution="auto", changed_entries=1000), epsilon=1)
    al.release(protocol, np.ones((20, 1000), dtype=np.float32), ledger=al.NO_LEDGER)
    print(time.perf_counter() - start)
"""

_LARGE_RELEASE = """
    import json, sys, threading, time
    import numpy as np
    import pyarrow as pa
    import armslength as al

    kind, path = sys.argv[1:3]
    rows, width, k = map(int, sys.argv[3:])
    protocol = al.Protocol(al.SparseJL(input_dim=width, sketch_dim=k, sparsity=4, seed="bench"), al.Arrays(resolution="auto", changed_entries=width), epsilon=1)
    al.release(protocol, np.ones((20, width), dtype=np.float32), ledger=al.NO_LEDGER)  # compiled, and tables made

    def batches():
        generator = np.random.default_rng(0)
        schema = pa.schema([(f"c{number}", pa.float32()) for number in range(width)])
        def one():
            for start in range(0, rows, 2048):
                block = generator.standard_normal((min(2048, rows - start), width), dtype=np.float32)
                yield pa.record_batch(list(np.ascontiguousarray(block.T)), schema=schema)
        return pa.RecordBatchReader.from_batches(schema, one())

    X = np.memmap(path, dtype=np.float32, mode="r", shape=(rows, width)) if kind == "memmap" else batches()

    def private_memory():
        # what the process holds itself; pages of the mapped file are the system's cache
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

    before, peak, done = private_memory(), 0, False

    def watch():
        global peak
        while not done:
            peak = max(peak, private_memory())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    sketches = al.release(protocol, X, ledger=al.NO_LEDGER)
    done = True
    watcher.join()
    output = sketches.values.nbytes
    print(json.dumps({"input": rows * width * 4, "output": output, "beyond_output": max(0, peak - before - output)}))
"""


def _python(script: str, *arguments: str, cache: str | None = None) -> str:
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = cache
    done = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.stdout


def starts() -> dict[str, float]:
    """Seconds of a small release with its import: first on a fresh machine, then in a second process."""
    with tempfile.TemporaryDirectory() as cache:
        first = float(_python(_SMALL_RELEASE, cache=cache))
        second = min(float(_python(_SMALL_RELEASE, cache=cache)) for _ in range(3))
    return {"first": first, "second": second}


def memory(sizes: tuple[int, int, int]) -> dict[str, dict[str, Any]]:
    """Bytes of input, output and peak beyond the output, for an input on disk and for a stream of batches."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        with path.open("wb") as file:
            file.truncate(sizes[0] * sizes[1] * 4)  # zeros that take no disk; they are read like any others
        for kind in ("memmap", "batches"):
            found[kind] = json.loads(_python(_LARGE_RELEASE, kind, str(path), *map(str, sizes)))
    return found
