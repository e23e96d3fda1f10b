"""A release whose process is forked in the middle, by a signal handler say: the child is refused at once, and the parent goes on."""

import subprocess
import sys

import pytest

HANGS = 120  # seconds: a child that waits for its parent's threads waits for ever

SCRIPT = """
import os, signal, sys, threading, time
import numpy as np, pyarrow as pa
import armslength as al
from armslength import threads as threads_module
from armslength.ingest.contributions import KeyedOrder
from armslength.ingest.encoding import EventEncoder
from armslength.ingest.partitions import _TemporaryFile
from armslength.ingest.sums import GroupSums
from armslength.releasing import release

parent, children = os.getpid(), []

def fork_once(*_):
    if not children and os.getpid() == parent:
        children.append(os.fork())

signal.signal(signal.SIGALRM, fork_once)

def forking(place, name, call=1):
    "Forks before that call of a function."
    real, calls = getattr(place, name), []
    def forked(*given, **known):
        calls.append(1)
        if len(calls) == call and threading.current_thread() is threading.main_thread():
            fork_once()
        elif len(calls) == call:  # as a program's own signal handler does, while this thread works
            time.sleep(0.3)  # until the main thread waits: in the middle of a submit Python itself cannot fork
            os.kill(parent, signal.SIGALRM)
            while not children:
                time.sleep(0.01)
        return real(*given, **known)
    setattr(place, name, forked)

def rows():
    protocol = al.Protocol(al.SparseJL(input_dim=1000, sketch_dim=1024, seed="t"), al.Counts(1), epsilon=1, unit="u")
    return al.release(protocol, np.ones((2000, 1000), dtype=np.int64), ledger=al.NO_LEDGER)

def table(memory="1GB", threads=None):
    count = 400_000
    events = pa.table({"who": np.arange(count).astype(str), "what": (np.arange(count) % 7).astype(str)})
    protocol = al.Protocol(al.SparseJL(sketch_dim=64, seed="t"), al.Counts(1), epsilon=1, unit="u")
    return al.release(protocol, events, person="who", item="what", label="x", ledger=al.NO_LEDGER, memory=memory, threads=threads)

def waiting():
    "Forks in the thread that waits for the others."
    from armslength.threads import for_runs
    signal.signal(signal.SIGALRM, fork_once)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    for_runs(16, 1, lambda *_: time.sleep(0.2), threads=2)

def drawing():
    "Forks just before the noise is drawn."
    forking(release, "noised")
    rows()

def reading(threads=None):
    "Forks in the middle of a query: one batch was read, and is about to be encoded."
    forking(threads_module, "partial")
    table(threads=threads)

def reading_alone():
    reading(1)

def partitioning():
    forking(EventEncoder, "block")
    table(threads=1)

def writing():
    forking(_TemporaryFile, "write")
    table("2MB", 1)

def reading_back():
    forking(_TemporaryFile, "read", 5)
    table("2MB", 1)

def bounding():
    forking(KeyedOrder, "bounded", 2)
    table(threads=1)

def adding():
    "Forks in the thread that adds, while others bound."
    forking(GroupSums, "add", 2)
    table("2MB", 2)

try:
    globals()[sys.argv[1]]()
    code = 0
except RuntimeError as problem:
    code = 3 if "forked in the middle" in str(problem) else 4
if os.getpid() != parent:
    sys.exit(code)
print(code, os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""


PLACES = [
    *(
        "waiting",
        "drawing",
        "reading",
        "reading_alone",
        "partitioning",
        "writing",
        "reading_back",
        "bounding",
        "adding",
    )
]


@pytest.mark.parametrize("place", PLACES)
def test_the_child_is_refused_and_the_parent_goes_on(place):
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, place],
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert ended.stdout.strip().splitlines()[-1:] == ["0 3"], ended.stderr[-2000:]
