"""What the page "One person, one vote" says of the National Hospital Discharge Survey, in the clear."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "one-person-one-vote.md").read_text(encoding="utf-8")
DATA = ROOT.parent / "shared" / "data" / "nhds2010_diagnoses.parquet"


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data")
def test_the_numbers_of_the_page():
    table = pq.read_table(DATA)
    patients, codes = table["patient"].to_numpy(), table["code"].combine_chunks()
    items, names = codes.indices.to_numpy(), codes.dictionary.to_pylist()
    first = np.r_[True, patients[1:] != patients[:-1]]  # a patient's diagnoses are one after the other
    order = np.arange(len(patients)) - np.maximum.accumulate(np.where(first, np.arange(len(patients)), 0))
    half = np.random.default_rng(1).random(patients.max() + 1) < 0.5

    def votes(chosen, more=0):
        each = np.bincount(patients[chosen]) + more
        weights = 1 / each[patients[chosen]]
        of_own = [np.sum(1 / each[np.unique(patients[chosen])]) * more]
        shares = np.append(np.bincount(items[chosen], weights, len(names)), of_own)
        return shares / shares.sum()

    def similarity(chosen, more=0):
        p, q = votes(half[patients]), votes(~half[patients] & chosen, more)
        return p @ q / np.sqrt((p @ p) * (q @ q))

    stated = [similarity(order < most) for most in (100, 5, 3, 1)] + [similarity(order < 100, more=1)]
    rows = ("everything", "only the first five", "only the first three", "only the first |", "one code of")
    for row, value in zip(rows, stated, strict=True):
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| {row}"))
        shown = line.split("|")[2].strip()
        assert float(shown) == round(value, len(shown) - 2), line
    pressure = items == names.index("4019")
    people = len(np.unique(patients))
    assert f"{pressure.sum() / people:.0%}".replace("%", " %") in PAGE
    share = votes(np.full(len(items), True))[names.index("4019")]
    assert f"has {share:.0%} of".replace("%", " %") in PAGE.replace("\n", " ")
