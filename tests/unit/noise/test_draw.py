"""The door of the noise: redraws, shapes, threads, forks, and no way in for a seed."""

import copy
import inspect
import multiprocessing
import os
import pickle
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from armslength.errors import ParameterError
from armslength.laws import DiscreteLaplace, RoundedNormal
from armslength.noise import draw as door
from armslength.noise.draw import SecretBits, add_draws, add_noise, draw
from exact_laws import pmf

WIDE = DiscreteLaplace(2.0**35)
SIGN = 2**63


@pytest.mark.parametrize(
    "law", [DiscreteLaplace(1.0), RoundedNormal(1.0), DiscreteLaplace(1000.0), RoundedNormal(1000.0)]
)
def test_the_sign_changes_nothing_but_the_sign(law):
    generator = np.random.default_rng(3)
    words = generator.integers(0, 2**63, 2000, dtype=np.uint64)
    plain, negative = (np.zeros(2000, dtype=np.int64) for _ in range(2))
    door.invert_words(plain, law, words, SecretBits())
    door.invert_words(negative, law, words | np.uint64(SIGN), SecretBits())
    assert np.array_equal(plain, -negative)
    assert (plain >= 0).all()


def test_zero_has_its_probability_without_a_second_draw():
    # A floor of −b·ln W alone would give ±0 twice the probability of 0, and drawing the sign again would break ε. The
    # shift makes P(magnitude ≥ 1) = 2α/(1+α), so that W just above it, and nothing else, is 0.
    law = DiscreteLaplace(1.0)
    boundary = 2 * np.exp(-1.0) / (1 + np.exp(-1.0))
    for w, magnitude in ((boundary * (1 + 1e-9), 0), (boundary * (1 - 1e-9), 1), (0.999999, 0)):
        value = np.zeros(1, dtype=np.int64)
        door.invert_words(value, law, np.array([int(w * 2**63)], dtype=np.uint64), SecretBits())
        assert value[0] == magnitude
    assert 1 - boundary == pytest.approx(pmf(law, 0))


@pytest.mark.parametrize("law", [DiscreteLaplace(5.0), RoundedNormal(5.0), DiscreteLaplace(5000.0)])
def test_a_draw_takes_a_fixed_number_of_bits_at_first(law):
    asked = []

    class Counting(SecretBits):
        def words(self, count):
            asked.append(count)
            return super().words(count)

    add_draws(np.zeros(1001, dtype=np.int64), law, Counting())
    assert asked[0] == (251 if law.scale < 256 else 1001)


def test_noise_is_added_to_what_is_there():
    for law in (DiscreteLaplace(0.01), RoundedNormal(0.01)):  # whose draws are 0
        values = np.arange(12).reshape(3, 4)
        add_noise(values, law)
        assert np.array_equal(values, np.arange(12).reshape(3, 4))
    values = np.full((300, 700), 2**62)
    add_noise(values, WIDE)
    assert len(np.unique(values)) > 200_000
    assert abs((values - 2**62).mean()) < 2**62


def test_noise_never_goes_to_a_copy():
    square = np.zeros((8, 8), dtype=np.int64)
    for values in (square[:, :4], square.T[:, 1:], square.astype(np.int32), square.astype(np.uint64)):
        with pytest.raises(ValueError, match="contiguous int64"):
            add_noise(values, WIDE)
    frozen = square.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="written to"):
        add_noise(frozen, WIDE)


def test_a_buffer_that_is_used_again_holds_new_bits():
    buffer = np.empty(102, dtype=np.uint64)
    first = SecretBits(buffer).words(100).copy()
    source = SecretBits(buffer)
    second = source.words(100)
    assert np.shares_memory(second, buffer)
    assert not np.isin(first, second).any()
    # only the first words of a source go there: what is in use is never written over
    third = source.words(100)
    assert not np.shares_memory(third, buffer)
    assert not np.isin(third, buffer[:100]).any()
    assert not np.shares_memory(SecretBits(buffer[:50]).words(100), buffer)


def test_shapes():
    assert draw(WIDE, (3, 4)).shape == (3, 4)
    assert draw(WIDE, (0, 4)).shape == (0, 4)
    assert draw(WIDE, ()).shape == ()
    assert draw(WIDE, (200_001,)).dtype == np.int64


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_fills_everything(threads):
    noise = draw(WIDE, (300_000,), threads=threads)
    assert len(np.unique(noise)) > 299_900


def test_two_draws_never_agree():
    assert not np.array_equal(draw(WIDE, (100,)), draw(WIDE, (100,)))


def test_four_threads_at_once_draw_different_noise():
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: draw(WIDE, (50_000,)), range(4)))
    together = np.concatenate(results)
    assert len(np.unique(together)) > len(together) - 20


def test_four_threads_at_once_in_the_slow_levels():
    law = DiscreteLaplace(2.0**40)

    def slow(_):
        values = np.zeros(50, dtype=np.int64)
        # Words below 2^20 go to ball arithmetic, whose precision belongs to the whole process.
        add_draws(values, law, _SmallFirstWords())
        return values

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(slow, range(8)))
    for values in results:
        assert (np.abs(values) > 40 * 2.0**40 * np.log(2)).all()


class _SmallFirstWords:
    def __init__(self):
        self.source, self.first = SecretBits(), True

    def words(self, count):
        words = self.source.words(count)
        if self.first:
            self.first = False
            return (words & np.uint64(2**20 - 1)) | np.uint64(1)
        return words


def _child_noise(count):
    return draw(WIDE, (count,))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_never_share_noise(method):
    before = draw(WIDE, (1000,))
    context = multiprocessing.get_context(method)
    with context.Pool(3) as pool:
        parts = pool.map(_child_noise, [1000] * 6)
    after = draw(WIDE, (1000,))
    together = np.concatenate([before, *parts, after])
    assert len(np.unique(together)) > len(together) - 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_the_middle_of_other_threads_work():
    with ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(draw, DiscreteLaplace(2.0**40), (400_000,)) for _ in range(2)]
        child = os.fork()
        if child == 0:
            fine = len(np.unique(draw(DiscreteLaplace(2.0**40), (200_000,)))) > 199_900
            os._exit(0 if fine else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0
        for part in busy:
            assert part.result().shape == (400_000,)


def test_no_seed_reaches_the_noise():
    for function in (draw, SecretBits):
        assert not {"seed", "rng", "random_state", "source", "key"} & set(
            inspect.signature(function).parameters
        )
    np.random.seed(1)  # noqa: NPY002  # the legacy global seed is what this shows to be without effect
    random.seed(1)
    first = draw(WIDE, (50,))
    np.random.seed(1)  # noqa: NPY002  # the same
    random.seed(1)
    assert not np.array_equal(first, draw(WIDE, (50,)))


def test_every_block_has_a_key_of_its_own(monkeypatch):
    keys = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: keys.append(real(count)) or keys[-1])
    draw(WIDE, (3 * door._BLOCK_WORDS + 1,))
    assert len(set(keys)) == 4
    assert {len(key) for key in keys} == {32}


def test_a_draw_that_is_forked_in_the_middle_is_refused_in_the_child(monkeypatch):
    real = door.add_draws

    def fork_first(values, law, source):
        monkeypatch.setattr(door, "add_draws", real)
        reader, writer = os.pipe()
        if os.fork() == 0:
            try:
                real(values, law, source)
                outcome = b"filled"
            finally:
                os.write(writer, outcome)
            return
        os.close(writer)
        real(values, law, source)
        children.append(os.read(reader, 10))

    children = []
    parent = os.getpid()
    monkeypatch.setattr(door, "add_draws", fork_first)
    try:
        noise = draw(WIDE, (100,), threads=1)
    except RuntimeError as refused:
        if os.getpid() == parent:
            raise
        os._exit(0 if "forked in the middle" in str(refused) else 1)
    if os.getpid() != parent:
        os._exit(1)
    assert noise.shape == (100,)
    assert children == [b"filled"]
    assert os.wait()[1] == 0


def test_a_fork_waits_for_a_compilation():
    code = (
        "import os, threading, time, numpy as np\n"
        "from armslength._numba import kernel\n"
        "@kernel\n"
        "def slow(x):\n"
        "    return x + 1\n"
        "@kernel\n"
        "def other(x):\n"
        "    return x * 2\n"
        "from numba.core.compiler_lock import global_compiler_lock\n"
        "def hold():\n"
        "    with global_compiler_lock:\n"
        "        time.sleep(1.0)\n"
        "thread = threading.Thread(target=hold); thread.start(); time.sleep(0.2)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if other(3) == 6 else 1)\n"
        "thread.join(); raise SystemExit(os.waitpid(child, 0)[1])\n"
    )
    script = Path(tempfile.mkdtemp()) / "forks.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], timeout=60, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_secret_bits_cannot_be_copied():
    bits = SecretBits()
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            duplicate(bits)


def test_bad_threads():
    with pytest.raises(ParameterError, match="threads must be"):
        draw(WIDE, (5,), threads=0)
