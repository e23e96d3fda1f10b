"""Totals: what they cost, what they are of, how they travel through files and arithmetic, and what their intervals hold."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import armslength as al
from armslength.errors import CorruptFileError
from armslength.laws import DiscreteLaplace
from sealed import write_sealed
from statistical.limits import check_variance, draws_for_variance

SPARSE = al.SparseJL(input_dim=30, sketch_dim=8, seed="totals")
PROTOCOL = al.Protocol(SPARSE, al.Counts(3, total_share="0.25"), epsilon=1)
X = np.arange(60).reshape(2, 30) - 20


def test_epsilon_is_split_exactly():
    assert PROTOCOL.totals_epsilon == Fraction(1, 4)
    assert PROTOCOL.sketch_epsilon == Fraction(3, 4)
    assert PROTOCOL.law.scale == 3 / 0.75
    assert PROTOCOL.total_law.scale == 3 / 0.25
    replaced = al.Protocol(SPARSE, al.Counts(3, total_share="0.25"), epsilon=1, relation="replace")
    assert replaced.total_law.scale == 6 / 0.25
    gaussian = al.Protocol(
        SPARSE, al.Arrays(radius=3, total_share="0.25"), epsilon=1, delta=1e-6, noise="gaussian"
    )
    assert (
        gaussian.law.scale
        == al.Protocol(SPARSE, al.Arrays(radius=3), epsilon="0.75", delta=1e-6, noise="gaussian").law.scale
    )
    assert gaussian.total_law.scale == 12
    fine = al.Protocol(SPARSE, al.Arrays(radius=3, resolution=0.25, total_share="0.5"), epsilon=1)
    assert fine.total_law.scale == 24  # grid units


def test_a_protocol_with_totals_comes_back_and_shares_the_space(tmp_path):
    PROTOCOL.save(tmp_path / "p.json")
    loaded = al.Protocol.load(tmp_path / "p.json")
    assert loaded == PROTOCOL
    assert loaded.document()["derived"]["total_scale"] == (12.0).hex()
    assert loaded.space == al.Protocol(SPARSE, al.Counts(3), epsilon=2).space


@pytest.mark.parametrize(
    "data",
    [X, X.astype(float), sparse.csr_array(X), pa.table({f"c{i}": X[:, i] for i in range(30)})],
    ids=["dense", "floats", "sparse", "table"],
)
def test_totals_are_row_sums_whatever_the_input(data):
    clear = al.sketch_in_clear(PROTOCOL, data)
    assert clear.totals.tolist() == X.sum(axis=1).tolist()
    generous = al.Protocol(
        SPARSE, al.Counts(1, total_share="0.5"), epsilon=1000
    )  # noise that is 0 almost surely
    assert al.release(generous, data, ledger=al.NO_LEDGER).totals.tolist() == X.sum(axis=1).tolist()


def test_clamped_values_are_what_is_added_up():
    clamped = al.Protocol(SPARSE, al.Arrays(value_range=(0, 5), total_share="0.5"), epsilon=1)
    assert al.sketch_in_clear(clamped, X).totals.tolist() == np.clip(X, 0, 5).sum(axis=1).tolist()


def test_input_noise_and_streams_release_totals_too():
    fast = al.FastJL(input_dim=30, sketch_dim=8, seed="totals")
    protocol = al.Protocol(fast, al.Arrays(total_share="0.5"), epsilon=900, delta=1e-6, noise_site="input")
    assert al.release(protocol, X, ledger=al.NO_LEDGER).totals.tolist() == X.sum(axis=1).tolist()
    stream = al.stream(
        al.Protocol(SPARSE, al.Arrays(total_share="0.5"), epsilon=1000), label="s", ledger=al.NO_LEDGER
    )
    stream.update([1, 2, 3], [5, -1, 2])
    stream.update(4)
    stream.update(iter([7, 8]), 10)
    assert stream.release().totals.tolist() == [27]


def test_without_a_share_there_are_none():
    sketches = al.release(al.Protocol(SPARSE, epsilon=1), X, ledger=al.NO_LEDGER)
    assert sketches.totals is None
    with pytest.raises(al.ParameterError, match="without totals"):
        al.totals(sketches)


def test_totals_follow_arithmetic_and_files(tmp_path):
    a, b = (al.release(PROTOCOL, X, labels=["u", "v"], ledger=al.NO_LEDGER) for _ in range(2))
    assert (a + b).totals.tolist() == (a.totals + b.totals).tolist()
    assert (a - b).totals.tolist() == (a.totals - b.totals).tolist()
    assert (2 * a).totals.tolist() == (2 * a.totals).tolist()
    assert (a / 4).totals.tolist() == (a.totals / 4).tolist()
    assert a["v"].totals.tolist() == a.totals[1:].tolist()
    assert al.concat([a, b]).totals.tolist() == [*a.totals, *b.totals]
    without = al.release(al.Protocol(SPARSE, epsilon=1), X, ledger=al.NO_LEDGER)
    assert al.concat([a, without]).totals is None
    assert (a + without).totals is None
    for sketches in (a, a / 4, a - b):
        sketches.save(tmp_path / "s.parquet")
        loaded = al.load(tmp_path / "s.parquet")
        assert loaded.totals.tolist() == sketches.totals.tolist()
        assert al.totals(loaded).variance.tolist() == al.totals(sketches).variance.tolist()


def test_files_with_totals_that_no_protocol_released_are_refused(tmp_path):
    path = tmp_path / "s.parquet"
    al.release(al.Protocol(SPARSE, epsilon=1), X, ledger=al.NO_LEDGER).save(path)
    table = pq.read_table(path)
    write_sealed(table.append_column("total", pa.array([1, 2], pa.int64())), path)
    with pytest.raises(CorruptFileError):
        al.load(path)


def test_combined_totals_have_the_variance_of_their_noises():
    a, b = (al.release(PROTOCOL, X, ledger=al.NO_LEDGER) for _ in range(2))
    one = PROTOCOL.total_law.second_moment
    assert al.totals(a).variance == pytest.approx(one)
    assert al.totals(a + b).variance == pytest.approx(2 * one)
    assert al.totals(3 * a).variance == pytest.approx(9 * one)
    assert al.totals(a - a).variance == pytest.approx(0)
    in_clear = al.totals(al.sketch_in_clear(PROTOCOL, X))
    assert "not private" in in_clear.note
    assert in_clear.interval(0.95)[0].tolist() == X.sum(axis=1).tolist()


def test_sparse_rows_of_several_blocks_are_added_up():
    rows = sparse.random_array(
        (3000, 30), density=0.3, rng=1, data_sampler=lambda size: np.arange(size) % 7
    ).tocsr()
    protocol = al.Protocol(SPARSE, al.Arrays(total_share="0.5"), epsilon=1)
    rows = rows.astype(np.int64)
    assert al.sketch_in_clear(protocol, rows, threads=2).totals.tolist() == rows.sum(axis=1).tolist()
    wide = sparse.csr_array(np.ones((40, 60_000), dtype=np.int64))
    many = al.Protocol(
        al.SparseJL(input_dim=60_000, sketch_dim=8, seed="wide"), al.Arrays(total_share="0.5"), epsilon=1
    )
    assert al.sketch_in_clear(many, wide).totals.tolist() == [60_000] * 40


def test_totals_are_in_data_units():
    fine = al.Protocol(SPARSE, al.Arrays(radius=3, resolution=0.25, total_share="0.5"), epsilon=1)
    sketches = al.release(fine, np.full((2, 30), 0.5), ledger=al.NO_LEDGER)
    found = al.totals(sketches)
    assert found.value.tolist() == (sketches.totals * 0.25).tolist()
    assert found.variance == pytest.approx(fine.total_law.second_moment / 16)
    lower, upper = found.interval(0.9)
    assert (upper - lower).tolist() == [2 * 0.25 * fine.total_law.upper_quantile(0.05)] * 2
    both = al.totals(sketches[0] + sketches[1])
    lower, upper = both.interval(0.9)
    # a union bound over two noises
    assert (upper - lower).tolist() == [2 * 0.25 * 2 * fine.total_law.upper_quantile(0.025)]


def test_totals_that_are_no_numbers_are_refused(tmp_path):
    path = tmp_path / "s.parquet"
    (al.release(PROTOCOL, X, ledger=al.NO_LEDGER) / 3).save(path)
    table = pq.read_table(path)
    write_sealed(table.set_column(4, table.schema.field("total"), pa.array([np.nan, 1.0])), path)
    with pytest.raises(CorruptFileError, match="not finite"):
        al.load(path)


@pytest.mark.parametrize("scale", [0.3, 2.0, 12.0, 1e6])
@pytest.mark.parametrize("tail", [0.4, 0.025, 1e-6])
def test_the_upper_quantile_is_the_smallest(scale, tail):
    law = DiscreteLaplace(scale)
    found = law.upper_quantile(tail)
    beyond = 1 - law.cdf(np.array([float(found), found - 1.0]))
    assert beyond[0] <= tail * (1 + 1e-9)
    assert found == 0 or beyond[1] > tail * (1 - 1e-4)


def test_totals_have_the_stated_variance_and_coverage():
    count = draws_for_variance(kurtosis=6)  # of a Laplace law
    protocol = al.Protocol(
        al.SparseJL(input_dim=2, sketch_dim=1, seed="x"), al.Arrays(total_share="0.5"), epsilon=1
    )
    totals = al.totals(al.release(protocol, np.full((count, 2), 7), ledger=al.NO_LEDGER))
    check_variance(totals.value, 14, totals.variance[0])
    for level in (0.8, 0.95):
        lower, upper = totals.interval(level)
        missed = ((lower > 14) | (upper < 14)).mean()
        # an interval of whole numbers holds a little more than it must
        allowed = 1 - level
        error = np.sqrt(allowed * (1 - allowed) / count)
        assert missed < allowed + 4.9 * error
        assert missed > 0.5 * allowed
