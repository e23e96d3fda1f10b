"""Rows are flagged that the declared noise makes implausible, and no others."""

import math

import numpy as np
import pytest
from scipy import special

import armslength as al
from armslength.sketches import plausibility
from armslength.sketches.plausibility import FALSE_ALARM, implausible
from exact_laws import pmf

WIDTH = 128
TRANSFORM = al.SparseJL(input_dim=400, sketch_dim=WIDTH, sparsity=1, seed="plausible")
PROTOCOLS = {
    "laplace": al.Protocol(TRANSFORM, epsilon=1),
    "small scale": al.Protocol(TRANSFORM, epsilon=20),
    "gaussian": al.Protocol(TRANSFORM, epsilon=1, delta="1e-6", noise="gaussian"),
    "range": al.Protocol(TRANSFORM, al.Arrays(value_range=(0, 3)), epsilon="0.1"),
}


def released(protocol, counts):
    return al.release(protocol, counts, ledger=al.NO_LEDGER)


def as_sent(sketches, values):
    return al.Sketches(np.array(values), sketches.labels, sketches.noises, sketches.protocols)


def reasons(sketches):
    return {finding.reason.split(":")[0] for finding in implausible(sketches)}


@pytest.mark.parametrize("name", list(PROTOCOLS))
@pytest.mark.parametrize("data", ["nothing", "counts", "one large count"])
def test_what_was_released_as_declared_is_not_flagged(name, data):
    """500 rows each: 12 cases at a false alarm of 1e-9 each."""
    counts = np.zeros((500, 400), dtype=np.int64)
    if data == "counts":
        counts += np.random.default_rng(1).poisson(2.0, counts.shape).clip(0, 3)
    if data == "one large count":
        counts[:, 7] = 3 if name == "range" else 10**12
    assert implausible(released(PROTOCOLS[name], counts)) == []


@pytest.mark.parametrize("name", ["laplace", "gaussian", "range"])
def test_a_quarter_of_the_noise_is_flagged(name):
    sketches = released(PROTOCOLS[name], np.zeros((40, 400), dtype=np.int64))
    flagged = {finding.row for finding in implausible(as_sent(sketches, sketches.values // 4))}
    assert len(flagged) >= 38


def test_the_first_test_is_a_bound_for_any_data():
    """The chance of the crowd that is flagged, at the data that makes crowds likeliest: all numbers at one place."""
    limit = (
        1e-3  # a limit at which false alarms can be counted: 2,000 rows, at most 2 expected, 15 once in 10^8
    )
    protocol = PROTOCOLS["laplace"]
    values = released(protocol, np.zeros((2000, 400), dtype=np.int64)).values
    flagged = plausibility._crowded(protocol.law, np.sort(values, axis=1), limit).sum()
    assert flagged <= 15
    closer = np.sort(np.sign(values) * (np.abs(values) * 2 // 3), axis=1)
    assert plausibility._crowded(protocol.law, closer, limit).sum() > 200


@pytest.mark.parametrize("length", [1, 2, 3, 10, 11])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "small scale"])
def test_the_central_integers_are_the_likeliest(name, length):
    law = PROTOCOLS[name].law
    probabilities = np.sort(pmf(law, np.arange(-200, 201)))[::-1]
    assert plausibility._central(law, length) == pytest.approx(probabilities[:length].sum(), rel=1e-5)
    assert plausibility._central(law, length) >= probabilities[:length].sum()


@pytest.mark.parametrize("divisor", [2, 3, 1000])
def test_multiples_are_flagged_wherever_they_begin(divisor):
    sketches = released(PROTOCOLS["gaussian"], np.zeros((2, 400), dtype=np.int64))
    assert reasons(as_sent(sketches, divisor * sketches.values + 17)) == {"less noise than declared"}


def test_residues_are_no_likelier_than_the_bound():
    for name in ("laplace", "gaussian", "small scale"):
        law = PROTOCOLS[name].law
        probabilities = pmf(law, np.arange(-3000, 3001))
        for divisor in (2, 3, 7, 50):
            largest = max(probabilities[residue::divisor].sum() for residue in range(divisor))
            assert largest <= 1 / divisor + pmf(law, 0)


def test_numbers_beyond_the_range():
    sketches = released(PROTOCOLS["range"], np.full((2, 400), 3))
    values = sketches.values.copy()
    values[1, 5] = 4 * 400 + 10 * math.ceil(math.log(1e15) * 10)
    (finding,) = implausible(as_sent(sketches, values))
    assert (finding.row, finding.label) == (1, "1")
    assert "beyond" in finding.reason
    values[1, 5] = -(2**63)
    assert {finding.row for finding in implausible(as_sent(sketches, values))} == {1}


def test_copies_are_flagged_and_the_same_row_twice_is_not(tmp_path):
    protocol = PROTOCOLS["laplace"]
    sketches = released(protocol, np.ones((3, 400), dtype=np.int64))
    copied = as_sent(sketches, sketches.values[[0, 1, 0]])
    assert [finding.row for finding in implausible(copied)] == [0, 2]
    sketches.save(tmp_path / "s.parquet")
    assert implausible(al.load([tmp_path / "s.parquet", tmp_path / "s.parquet"])) == []
    assert implausible(al.concat([sketches, sketches[1], 2 * sketches])) == []


def test_one_noise_for_two_rows_is_flagged():
    protocol = PROTOCOLS["laplace"]
    first, second = (released(protocol, np.zeros((1, 400), dtype=np.int64)) for _ in range(2))
    same_noise = al.Sketches(second.values, ["b"], first.noises, [protocol])
    (finding,) = implausible(al.concat([first, same_noise]))
    assert (finding.row, finding.label) == (1, "b")
    assert "same noise" in finding.reason


def test_rows_without_a_noise_of_their_own_are_not_tested():
    protocol = PROTOCOLS["laplace"]
    zeros = np.zeros((2, 400), dtype=np.int64)
    fast = al.Protocol(
        al.FastJL(input_dim=16, sketch_dim=8, seed="x"), epsilon=1, delta="1e-6", noise_site="input"
    )
    assert implausible(al.sketch_in_clear(protocol, zeros)) == []
    assert implausible(0 * released(protocol, zeros)) == []
    assert implausible(released(protocol, zeros) / 1000) == []
    assert implausible(released(fast, np.zeros((3, 16), dtype=int))) == []
    assert implausible(released(protocol, zeros).rows([])) == []


def binomial_tail(count, trials, probability):
    return sum(
        math.comb(trials, n) * probability**n * (1 - probability) ** (trials - n)
        for n in range(count, trials + 1)
    )


@pytest.mark.parametrize("width", [5, 64, 256])
@pytest.mark.parametrize("central", [0.05, 0.4, 0.9])
def test_a_crowd_is_as_large_as_the_bound_asks_for(width, central):
    limit, lengths = 1e-3, 6

    def bound(count):
        return lengths * width * binomial_tail(count - 1, width - 1, central)

    most = plausibility._too_many(width, lengths, central, limit)
    if most is None:
        assert bound(width) > limit
    else:
        assert bound(most) <= limit < bound(most - 1)
    assert plausibility._too_many(width, lengths, 1.0, limit) is None


def test_every_divisor_pays_for_having_been_found():
    law, width, divisor = PROTOCOLS["gaussian"].law, 6, 1000
    row = np.array([[divisor * n + 3 for n in (-2, 0, 1, 4, 5, 9)]])
    chance = (1 / divisor + plausibility._central(law, 1)) ** (width - 1)
    for share, flagged in (
        (1, False),
        (0.99 * divisor * (divisor + 1), False),
        (1.01 * divisor * (divisor + 1), True),
    ):
        assert plausibility._multiples(PROTOCOLS["gaussian"].law, row, share * chance).tolist() == [flagged]


def test_differences_that_wrap_are_no_multiples():
    first = -(2**63)
    row = np.array(
        [[first, *(first + 2**63 + 3 * n + 2 for n in range(100))]]
    )  # 2^63 ≡ 2 and 2^64 ≡ 1 modulo 3
    steps = (row[0, 1:] - row[0, 0]).tolist()
    assert all(step % 3 == 0 for step in steps)
    assert plausibility._multiples(PROTOCOLS["gaussian"].law, row, 1e-9).tolist() == [False]


def test_false_alarms_are_shared_by_all_rows_and_tests(monkeypatch):
    limits = []
    monkeypatch.setattr(plausibility, "_reasons", lambda *known: limits.append(known[-1]) or [])
    implausible(released(PROTOCOLS["laplace"], np.zeros((10, 400), dtype=np.int64)))
    assert limits == [FALSE_ALARM / 40]


def test_every_pair_counts_where_copies_are_looked_for():
    protocol = PROTOCOLS["gaussian"]
    values = np.zeros((100, 8), dtype=np.int64)
    ids = np.array([bytes([n]) * 16 for n in range(100)], dtype="V16")
    chance = plausibility._central(protocol.law, 1) ** 8
    assert not plausibility._copies(protocol.law, values, ids, 10 * chance).any()
    assert plausibility._copies(protocol.law, values, ids, 1000 * chance).all()


def test_data_at_the_end_of_its_range_and_noise_beyond_it_are_not_flagged():
    one_bin = al.SparseJL(input_dim=400, sketch_dim=1, seed="x")
    aligned = 3 * np.tile(one_bin.matrix().toarray(), (20, 1))
    assert (
        implausible(released(al.Protocol(one_bin, al.Arrays(value_range=(-3, 3)), epsilon=1), aligned)) == []
    )
    noisy = al.Protocol(al.Identity(input_dim=1), al.Arrays(value_range=(0, 1)), epsilon="0.001")
    assert implausible(released(noisy, np.zeros((200, 1), dtype=int))) == []


def test_numbers_at_which_sums_wrap():
    sketches = released(PROTOCOLS["laplace"], np.zeros((1, 400), dtype=np.int64))
    for large, flagged in ((2**62, False), (2**62 + 1, True), (-(2**62), False), (-(2**62) - 1, True)):
        values = sketches.values.copy()
        values[0, 0] = large
        assert bool(implausible(as_sent(sketches, values))) == flagged


def test_which_rows_can_be_tested():
    protocol = PROTOCOLS["laplace"]
    sketches = released(protocol, np.zeros((3, 400), dtype=np.int64))
    fast = al.Protocol(
        al.FastJL(input_dim=16, sketch_dim=8, seed="x"), epsilon=1, delta="1e-6", noise_site="input"
    )
    assert plausibility.tested_rows(sketches) == 3
    assert plausibility.tested_rows(al.concat([sketches, 2 * sketches, sketches / 3])) == 3
    assert plausibility.tested_rows(0.5 * sketches * 2.0) == 3  # floats, and yet what was released
    assert plausibility.tested_rows(released(fast, np.zeros((3, 16), dtype=int))) == 0
    assert plausibility.tested_rows(al.sketch_in_clear(protocol, np.zeros((3, 400), dtype=int))) == 0


def test_a_row_that_was_taken_apart_and_put_together_again_is_the_same_row():
    sketches = released(PROTOCOLS["laplace"], np.full((2, 400), 1000))
    assert implausible(al.concat([sketches, 0.1 * sketches + 0.9 * sketches])) == []


def test_few_numbers_prove_nothing():
    tiny = al.Protocol(al.Identity(input_dim=2), epsilon=1)
    sketches = released(tiny, np.zeros((2, 2), dtype=np.int64))
    assert implausible(as_sent(sketches, np.zeros((2, 2), dtype=np.int64))) == []
    assert FALSE_ALARM == 1e-9


def test_how_many_numbers_are_too_many_is_found_by_bisection(monkeypatch):
    """A file of a few kilobytes may have rows of 2^24 numbers: a tail for each count would take minutes."""

    def one_by_one(width, lengths, central, limit):
        tails = {c: lengths * width * special.bdtrc(c - 2, width - 1, central) for c in range(2, width + 1)}
        return min((count for count, tail in tails.items() if tail <= limit), default=None)

    for width in (1, 2, 3, 17, 300):
        for central in (1e-9, 0.01, 0.3, 0.999):
            for limit in (1e-12, 1e-3, 0.5):
                expected = one_by_one(width, 6, central, limit)
                assert plausibility._too_many(width, 6, central, limit) == expected
    asked, tail = [], special.bdtrc
    monkeypatch.setattr(plausibility.special, "bdtrc", lambda *given: asked.append(1) or tail(*given))
    assert plausibility._too_many(2**24, 6, 0.01, 1e-12) > 2**24 * 0.01
    assert len(asked) < 40
