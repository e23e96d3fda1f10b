"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

from armslength.threads import available_threads

# The first call of a kernel compiles it, which no deadline knows of. Derandomized: a run never surprises.
settings.register_profile(
    "armslength", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("armslength")

_SLOW = {"faults", "spark", "statistical"}  # folders: processes that are killed, a cluster, many trials


def pytest_collection_modifyitems(items):
    for item in items:
        if _SLOW.intersection(item.path.parts):
            item.add_marker(pytest.mark.slow)
    # Spark first: it is the longest that one process runs. What comes last is short, so that all processes end together.
    items.sort(key=lambda item: ("spark" not in item.path.parts, not _SLOW.intersection(item.path.parts)))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers():
    """One more than there are cores: some tests wait for processes, disks and a cluster."""
    return available_threads() + 1


@pytest.hookimpl(optionalhook=True)  # the same
def pytest_xdist_make_scheduler(config, log):
    """Tests that share what is costly to start or to compute run in one process: those of a file, a server or a session."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  # where it may be missing

    class SharedStarts(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.split("::", maxsplit=1)[0]
            folder = file.rsplit("/", maxsplit=2)[-2]
            if folder in ("faults", "spark"):  # one server, one session
                return folder
            return nodeid if folder == "statistical" else file  # trials are long, and share nothing

    return SharedStarts(config, log)
