"""Points of a release by the lines of our own code: at the n-th line that runs, the process sends itself a signal."""

import os
import sys
import threading
from types import FrameType
from typing import Any

# Where a release is asked for, charged, drawn and written.
_FILES = (
    "/armslength/cli/release.py",
    "/armslength/files.py",
    "/armslength/ingest/contributions.py",
    "/armslength/ingest/encoding.py",
    "/armslength/ingest/engine.py",
    "/armslength/ingest/parquet_texts.py",
    "/armslength/ingest/relations.py",
    "/armslength/ingest/event_table.py",
    "/armslength/ingest/sums.py",
    "/armslength/ledger/ledger.py",
    "/armslength/ledger/ledger_file.py",
    "/armslength/noise/draw.py",
    "/armslength/releasing/release.py",
    "/armslength/sketches/sketch_file.py",
)


class Lines:
    """Counts lines of all threads that begin from now on, and sends a signal at one of them.

    Args:
        number: At which line, counted from 0; a negative one is never reached.
        sent: The signal.
        function: Counts the lines of this function alone, by its qualified name.
    """

    def __init__(self, number: int, sent: int, function: str | None = None) -> None:
        self.passed = 0
        self._number = number
        self._sent = sent
        self._function = function

    def start(self) -> None:
        """From now on."""
        threading.settrace(self._call)
        sys.settrace(self._call)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        del event, argument
        code = frame.f_code
        if self._function is None:
            return self._line if code.co_filename.endswith(_FILES) else None
        return (
            self._line if code.co_qualname == self._function and "/armslength/" in code.co_filename else None
        )

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        del frame, argument
        if event == "line":
            self.passed += 1
            if self.passed - 1 == self._number:
                os.kill(os.getpid(), self._sent)
        return self._line
