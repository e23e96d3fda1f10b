"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

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


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """One process runs all tests of Spark, so that one session starts; marks of a group do nothing under pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  # where it may be missing

    class OneSession(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "spark" if "spark/" in nodeid.split("::", maxsplit=1)[0] else nodeid

    return OneSession(config, log)
