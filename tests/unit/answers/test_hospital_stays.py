"""Answers about the National Hospital Discharge Survey against the truth in the clear: regions by who owns the hospital.

At most 8,000 stays of each of twelve parties; those of for-profit hospitals of the Midwest are mostly psychiatric. Noise is seeded.
"""

from bisect import bisect_right
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al
from armslength.answers.explain import Side, explain_sides, undercounts
from armslength.estimates.typical import large_enough
from report_parties import released_table

DATA = Path(__file__).parents[4] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")

MOST = 8000
STARTS = (0, 140, 240, 280, 290, 320, 390, 460, 520, 580, 630, 680, 710, 740, 760, 780, 800)
CHAPTERS = [
    "Infections",
    "Neoplasms",
    "Endocrine",
    "Blood",
    "Mental",
    "Nervous",
    "Circulatory",
    "Respiratory",
    "Digestive",
    "Genitourinary",
    "Pregnancy",
    "Skin",
    "Musculoskeletal",
    "Congenital",
    "Perinatal",
    "Symptoms",
    "Injuries",
]
POPULATIONS = {"about": "populations"}
ODD = "Midwest for-profit"


def chapter(code):
    """The chapter of an ICD-9 code."""
    if code[0] in "EV":
        return {"E": "External causes", "V": "Supplementary"}[code[0]]
    return CHAPTERS[bisect_right(STARTS, int(code[:3])) - 1]


class Stays:
    """A sample of the survey, and what is true of it."""

    def __init__(self):
        diagnoses, patients = (
            pq.read_table(DATA / f"nhds2010_{name}.parquet") for name in ("diagnoses", "patients")
        )
        names = np.char.add(
            np.char.add(patients["region"].to_pylist(), " "), patients["ownership"].to_pylist()
        )
        self.labels, party = np.unique(names, return_inverse=True)
        ids = patients["patient"].to_numpy()
        order = np.random.default_rng(1).permutation(len(ids))
        kept = np.sort(
            np.concatenate([order[party[order] == each][:MOST] for each in range(len(self.labels))])
        )
        self.labels = self.labels.tolist()
        place = np.full(ids.max() + 1, -1)
        place[ids[kept]] = np.arange(len(kept))
        of_person = place[diagnoses["patient"].to_numpy()]
        codes = diagnoses["code"].combine_chunks()
        self.party, self.person = party[kept], of_person[of_person >= 0]
        self.codes, self.item = codes.dictionary.to_pylist(), codes.indices.to_numpy()[of_person >= 0]
        self.table = pa.table(
            {
                "person": self.person,
                "item": pa.DictionaryArray.from_arrays(self.item, codes.dictionary).cast(pa.string()),
                "group": np.array(self.labels)[self.party[self.person]].tolist(),
            }
        )
        self.chapters = {code: chapter(code) for code in self.codes}

    def shares(self):
        """The plain share of each party's stays with a diagnosis in each chapter."""
        names = sorted(set(self.chapters.values()))
        of_item = np.array([names.index(self.chapters[code]) for code in self.codes])
        has = np.zeros((len(self.party), len(names)), dtype=bool)
        has[self.person, of_item[self.item]] = True
        return names, np.array([has[self.party == each].mean(axis=0) for each in range(len(self.labels))])

    def mixes(self):
        """The profile of each party: the average vote."""
        weights = 1 / np.bincount(self.person)[self.person]
        mixes = np.zeros((len(self.labels), len(self.codes)))
        np.add.at(mixes, (self.party[self.person], self.item), weights)
        return mixes / mixes.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def stays():
    return Stays()


@pytest.fixture(scope="module")
def sketches(stays):
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=512, seed="nhds"),
        al.Votes(
            total_share="0.1",
            spread_sample="0.5",
            item_groups=al.ItemGroups(stays.chapters, share="0.3", limit=10),
        ),
        epsilon=1,
        unit="one hospital stay",
    )
    return released_table(protocol, stays.table, stays.labels, margins=stays.chapters)


def test_groups_have_no_pair_that_is_found_to_differ_and_large_parties_are_told_apart(sketches):
    found = al.cluster(sketches, **POPULATIONS)
    for rows in found.group_rows():
        assert not found.differ[np.ix_(rows, rows)].any()
    # What differs least are the non-profit hospitals of the Midwest and the South.
    large = [found.labels.index(label) for label in found.labels if label.endswith("government")]
    assert found.differ[np.ix_(large, large)].sum() == len(large) * (len(large) - 1)


def test_intervals_of_similarity_hold_the_truth(stays, sketches):
    mixes = stays.mixes()
    lengths = np.linalg.norm(mixes, axis=1)
    lower, upper = al.similarities(sketches, about="populations").interval(0.95, simultaneous=True)
    cosines = mixes @ mixes.T / np.outer(lengths, lengths)
    pairs = np.triu_indices(len(mixes), 1)
    assert (lower[pairs] <= cosines[pairs]).all()
    assert (cosines[pairs] <= upper[pairs]).all()


def test_the_odd_party_is_called_and_no_other(stays, sketches):
    found = al.outliers(sketches, **POPULATIONS)
    assert [found.labels[row] for row in np.flatnonzero(found.is_outlier)] == [ODD]
    assert found.labels[found.ranking[0]] == ODD
    assert found.reasons[found.ranking[0]]
    # The truth: the distance of each from the average of the others, none weighing more than the median.
    rows = [stays.labels.index(label) for label in found.labels]
    mixes, people = stays.mixes()[rows], np.bincount(stays.party)[rows]
    weights = np.minimum(people, np.median(people))
    typical = [
        np.average(np.delete(mixes, row, 0), axis=0, weights=np.delete(weights, row))
        for row in range(len(rows))
    ]
    distances = np.linalg.norm(mixes - typical, axis=1)
    assert (found.distance[:, 1] <= distances).all()
    assert (distances <= found.distance[:, 2]).all()
    ratios = [distance / np.median(np.delete(distances, row)) for row, distance in enumerate(distances)]
    assert (np.array(ratios)[found.is_outlier] > 1.5).all()


def test_explanations_hold_the_plain_shares(stays, sketches):
    names, shares = stays.shares()
    bound, missing = undercounts(sketches)
    assert bound == 10
    assert max(missing) < 0.02
    large = [row for row, people in enumerate(np.bincount(stays.party)) if people > 1000]
    pairs = list(combinations(range(len(large)), 2))
    sides = [Side.of(sketches, [row]) for row in large]
    for about in ("populations", "people"):
        found = wrong = refused = 0
        for (i, j), answer in zip(pairs, explain_sides(sides, pairs, about=about, level=0.95), strict=True):
            if isinstance(answer, str):  # all pairs together, of a few noise could hide nearly any difference
                refused += 1
                continue
            truth = shares[large[j]] - shares[large[i]]
            for name, lower, upper in zip(answer.item_groups, answer.lower, answer.upper, strict=True):
                exact = truth[names.index(name)] if name in names else 0.0
                wrong += not lower <= exact <= upper
                found += lower > 0 or upper < 0
        assert wrong == 0
        assert refused < len(pairs) / 4
        assert found > 30
    known = al.explain(sketches, ODD, "South government")
    assert "fewer with Mental" in " ".join(known.reasons(10))


def test_what_sets_the_odd_party_apart(stays, sketches):
    row = stays.labels.index(ODD)
    rows = sketches[large_enough(sketches, beyond_chance=True)]
    found = al.explain(sketches, ODD)
    assert "more with Mental (+" in " ".join(found.reasons(20))
    names, shares = stays.shares()
    people = np.bincount(stays.party)
    weights = np.minimum(people, np.median(people))
    others = [stays.labels.index(label) for label in rows.labels if label != ODD]
    typical = np.average(shares[others], axis=0, weights=weights[others])
    for name, lower, upper in zip(found.item_groups, found.lower, found.upper, strict=True):
        if name in names:
            exact = shares[row, names.index(name)] - typical[names.index(name)]
            assert lower <= exact <= upper, name


def test_the_report_names_it(sketches, tmp_path):
    al.report(sketches, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ODD in page
