"""Progress: a bar with a rate where somebody sits at a terminal, and silence elsewhere."""

import os
import struct
import subprocess
import sys

import pytest

PROGRAM = (
    "import time\n"
    "from armslength.progress import progress\n"
    "with progress('pairs', 1000, 'pairs', show={show}) as advance:\n"
    "    for _ in range(10):\n"
    "        time.sleep(0.08)\n"
    "        advance(100)\n"
)


def on_a_terminal(show):
    pty = pytest.importorskip("pty", reason="this system has no terminals")
    fcntl, termios = pytest.importorskip("fcntl"), pytest.importorskip("termios")
    reader, writer = pty.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))  # a terminal has a size
    subprocess.run([sys.executable, "-c", PROGRAM.format(show=show)], stderr=writer, check=True)
    os.close(writer)
    seen = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # how Linux says that the other end is closed
            part = b""
        if not part:
            os.close(reader)
            return seen.decode()
        seen += part


def test_a_terminal_sees_a_bar_with_its_rate():
    seen = on_a_terminal(show=True)
    assert "pairs:" in seen
    assert "pairs/s" in seen


def test_nobody_else_sees_anything():
    assert on_a_terminal(show=False) == ""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(show=True)], capture_output=True, text=True, check=True
    )
    assert done.stderr == done.stdout == ""
