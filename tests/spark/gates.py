"""Tasks that say where they run, stop in the middle, and are lost: by files and named pipes, without any waiting for a clock."""

import contextlib
import os
import select
import signal
from pathlib import Path

_PATIENCE = 90  # seconds until a test fails that would hang


def noted(task, folder, *, holds=False, again=None):
    """The task, which leaves a note of each attempt, with the process of its executor.

    Args:
        task: What it does then, with the batches of its partition.
        folder: Where notes go.
        holds: Whether the first attempt of all tells its executor through the pipe `told` and then waits for the pipe `gate`.
        again: What is made of the batches of an attempt that runs after the file `lost` is there.
    """

    def attempt(batches):
        import itertools  # noqa: PLC0415  # this function travels alone
        import os  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        from pyspark import TaskContext  # noqa: PLC0415

        def parent(process):
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            return int(next(line for line in lines if line.startswith("PPid:")).split()[1])

        first = next(batches, None)
        if first is None:
            return
        batches = itertools.chain([first], batches)
        executor = parent(os.getppid())  # our parent is the daemon that forks workers
        context = TaskContext.get()
        note = Path(folder, f"attempt-{context.partitionId()}-{context.taskAttemptId()}")
        note.write_text(str(executor))
        if holds:
            try:
                os.close(os.open(Path(folder, "held"), os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                Path(folder, "told").write_text(str(executor))
                Path(folder, "gate").read_text()
        if again is not None and Path(folder, "lost").exists():
            batches = again(batches)
        yield from task(batches)

    return attempt


def turned(batches):
    """The rows of each batch from the last to the first."""
    return (batch.take(list(range(batch.num_rows))[::-1]) for batch in batches)


def shortened(batches):
    """Each batch without its first row."""
    return (batch.slice(1) for batch in batches)


def make_pipes(folder):
    """The two pipes of an attempt that holds."""
    for name in ("told", "gate"):
        os.mkfifo(folder / name)


def told(folder):
    """The executor of the attempt that holds, as soon as it does."""
    pipe = os.open(folder / "told", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([pipe], [], [], _PATIENCE)[0], "no task has begun"
        return int(os.read(pipe, 100))
    finally:
        os.close(pipe)


def let_go(folder):
    """Ends the wait of an attempt that still holds."""
    with contextlib.suppress(OSError):  # nobody waits
        os.close(os.open(folder / "gate", os.O_WRONLY | os.O_NONBLOCK))


def attempts(folder):
    """(partition, executor) of each attempt."""
    return [(note.name.split("-")[1], int(note.read_text())) for note in sorted(folder.glob("attempt-*"))]


def lose(folder, executor):
    """Kills an executor as the machine would."""
    Path(folder, "lost").touch()
    os.kill(executor, signal.SIGKILL)


def lose_files(folder):
    """Removes what tasks have written for the tasks after them, as a failing disk would."""
    Path(folder, "lost").touch()
    for written in Path(os.environ["SPARK_LOCAL_DIRS"]).rglob("shuffle_*"):
        written.unlink()
