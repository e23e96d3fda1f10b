"""Four hospitals with 123 to 303 heart patients each, at ε = 3: what differs in truth is told apart, beyond chance too."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import armslength as al

FILE = Path(__file__).parents[3] / "shared" / "data" / "uci_heart_4hospitals.parquet"  # beside the project
EDGES = {
    "age": [40, 50, 60, 70],
    "trestbps": [120, 140, 160],
    "chol": [1, 200, 240, 280],
    "thalach": [110, 130, 150, 170],
    "oldpeak": [0.5, 1.5, 2.5],
}


def item(column, value):
    """A value as an item: in a public bin if it is a measurement."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return f"{column} missing"
    return f"{column} {np.searchsorted(EDGES[column], value, side='right') if column in EDGES else value}"


@pytest.mark.skipif(not FILE.exists(), reason="the heart data is not beside the project")
@pytest.mark.parametrize("about", ["people", "populations"])
def test_hospitals_that_differ_are_found(about):
    patients = pq.read_table(FILE).to_pylist()
    columns = [name for name in patients[0] if name != "hospital"]
    events = [
        {"patient": str(number), "item": item(column, patient[column]), "hospital": patient["hospital"]}
        for number, patient in enumerate(patients)
        for column in columns
    ]
    hospitals = sorted({patient["hospital"] for patient in patients})
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=64, seed="heart"), al.Votes(total_share="0.3"), epsilon=3, unit="one patient"
    )
    sketches = al.release(
        protocol,
        pa.Table.from_pylist(events),
        person="patient",
        item="item",
        group="hospital",
        public_groups=hospitals,
        ledger=al.NO_LEDGER,
    )
    # All six pairs are far apart: 0.1 to 0.16, where equal mixes are found to differ from about 0.06 on.
    assert al.compare(sketches, about=about).counts()["differ"] >= 5
