"""Files that appear whole or not at all."""

import os
import stat

import pytest

from armslength.errors import CorruptFileError, ParameterError
from armslength.files import atomic_write, read_json, read_limited


def test_a_file_appears_at_the_end(tmp_path):
    target = tmp_path / "file"
    with atomic_write(target) as file:
        file.write(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole"
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o644  # noqa: PTH116  # the mode as the system has it


@pytest.mark.parametrize("interruption", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_interruption_leaves_what_was_there(tmp_path, interruption):
    target = tmp_path / "file"
    target.write_bytes(b"before")

    def interrupted():
        with atomic_write(target) as file:
            file.write(b"half")
            raise interruption

    with pytest.raises(interruption):
        interrupted()
    assert target.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_written_to_is_a_clear_line(tmp_path):
    for bad in (tmp_path / "missing" / "file", tmp_path):
        with pytest.raises(ParameterError), atomic_write(bad):
            pass


def test_reading_stops_at_the_limit(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_limited(tmp_path / "file", 5, "it") == b"12345"
    with pytest.raises(CorruptFileError, match="at most 4 bytes"):
        read_limited(tmp_path / "file", 4, "it")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_limited(tmp_path / "missing", 5, "it")
    with pytest.raises(ParameterError, match="cannot read"):
        read_limited(tmp_path, 5, "it")


@pytest.mark.parametrize("text", [b"", b"{", b'{"a": 1, "a": 2}', b"NaN", b"[" * 200_000, b"\xff"])
def test_strict_json(text):
    with pytest.raises(CorruptFileError, match="it is not valid JSON"):
        read_json(text, "it")
