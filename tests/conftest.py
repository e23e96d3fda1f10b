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
