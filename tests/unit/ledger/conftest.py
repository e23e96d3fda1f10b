"""An entry to charge, and a clock that a test can set."""

from datetime import UTC, datetime

import pytest

from armslength.ledger import ledger_file
from armslength.ledger.entry import Entry


@pytest.fixture
def entry():
    return Entry(
        population="visits",
        period="",
        file="north.parquet",
        release="0123456789abcdef01234567",
        unit="one patient",
        relation="add_remove",
        radius="1",
        law="laplace",
        scale="0x1.0p+0",
        sensitivity_squared="",
        epsilon="1",
        delta="0",
        totals_epsilon="0",
        protocol="f" * 64,
        version="0.1",
    )


@pytest.fixture
def set_clock(monkeypatch):
    """Sets the time of the ledger, in UTC."""

    def set_to(text):
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)

        class Clock(datetime):
            @classmethod
            def now(cls, tz=None):
                return moment.astimezone(tz)

        monkeypatch.setattr(ledger_file, "datetime", Clock)

    return set_to
