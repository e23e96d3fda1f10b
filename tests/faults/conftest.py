"""One server of forked commands for each worker, and parties in it."""

import pytest
from audit.faults.forks import Forks
from audit.faults.party import Party


@pytest.fixture(scope="session")
def temporary(tmp_path_factory):
    """Where the commands put their temporary files."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="session")
def forks(temporary):
    server = Forks(temporary)
    yield server
    server.close()


@pytest.fixture(scope="session")
def parties(forks, tmp_path_factory):
    """A party that has released nothing yet, and one that replaces an earlier release."""
    folder = tmp_path_factory.mktemp("parties")
    return {
        "first": Party(folder / "first", forks, released_before=False),
        "again": Party(folder / "again", forks, released_before=True),
    }


@pytest.fixture
def party(parties, request):
    """The first of them, or the one that a test names, as it was in the beginning."""
    chosen = parties[getattr(request, "param", "first")]
    chosen.restore()
    return chosen


@pytest.fixture(scope="session")
def line_counts(parties):
    """How many lines of ours a release without a fault runs, by the folder of its party."""
    counts = {}
    for each in parties.values():
        each.restore()
        counts[each.folder] = each.run().lines
    return counts
