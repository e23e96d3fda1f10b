"""A projection alone hides nobody; the noise does. A crowd is seen, a person in it is not."""

import math

import numpy as np
import pytest
from attacks.sparse_recovery import (
    CHANCE,
    HELD,
    ITEMS,
    SKETCH,
    TRANSFORMS,
    attacked,
    crowd,
    dense_matrix,
    main,
    persons,
    protocol_of,
    pursued,
)

import armslength as al
from statistical.limits import LIMIT

PEOPLE = 200


@pytest.fixture(scope="module")
def people():
    return persons(PEOPLE, np.random.default_rng(5))


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_without_noise_almost_all_is_found(name, people):
    assert attacked(TRANSFORMS[name](), people[:40], None).mean() > 0.98 * HELD


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_at_epsilon_1_it_is_items_from_a_hat(name, people):
    found = attacked(TRANSFORMS[name](), people, 1).sum()
    # About CHANCE·PEOPLE = 40 by chance, with a variance below its mean. Bernstein's bound on more than that, at 1e-6.
    chance, needed = CHANCE * PEOPLE, math.log(1e6)
    assert found <= chance + math.sqrt(2 * chance * needed) + needed
    assert found >= chance - math.sqrt(2 * chance * needed)


def test_the_attack_survives_weak_noise(people):
    assert attacked(TRANSFORMS["SparseJL"](), people[:40], 3000).mean() > HELD / 2


def test_pursuit_takes_no_column_twice_and_finds_what_is_there():
    generator = np.random.default_rng(1)
    A = generator.integers(0, 2, (60, 90)) * 2.0 - 1
    x = np.zeros((3, 90))
    for row in x:
        row[generator.choice(90, 4, replace=False)] = [5, -3, 2, 1]
    chosen = pursued(A, x @ A.T, 10)
    for row, columns in zip(x, chosen, strict=True):
        assert len(set(columns.tolist())) == 10
        assert set(np.flatnonzero(row)) <= set(columns.tolist())
        assert columns[0] == np.abs(row).argmax()


def test_persons_hold_as_many_items_as_the_protocol_allows(people):
    assert people.shape == (PEOPLE, ITEMS)
    assert (np.diff(people.indptr) == HELD).all()
    assert (people.toarray() <= 1).all()
    assert protocol_of(TRANSFORMS["SparseJL"]()).contribution == HELD
    assert dense_matrix(TRANSFORMS["SignJL"]()).shape == (SKETCH, ITEMS)


def test_a_crowd_is_seen_and_one_person_more_or_less_is_not():
    transform, releases = TRANSFORMS["SparseJL"](), 1000
    (found, larger), (_, smaller) = (crowd(transform, size, releases) for size in (4000, 3999))
    assert found > 0.99
    assert abs(larger.mean() - 4000) < LIMIT * larger.std() / math.sqrt(releases)
    right = ((larger > 3999.5).mean() + (smaller <= 3999.5).mean()) / 2
    assert right < math.e / (1 + math.e)
    assert crowd(transform, 1, releases)[0] < 0.05


def test_in_a_sparse_sketch_the_rows_of_a_large_count_stand_out_by_themselves():
    transform = TRANSFORMS["SparseJL"]()
    x = np.zeros((1, ITEMS), dtype=np.int64)
    x[0, 7] = 20_000
    seen = np.abs(al.release(protocol_of(transform), x, ledger=al.NO_LEDGER).values[0])
    rows = np.flatnonzero(dense_matrix(transform)[:, 7])
    assert set(np.argsort(seen)[-len(rows) :]) == set(rows)


def test_the_story(capsys):
    main()
    assert "random guesses 0.20" in capsys.readouterr().out
