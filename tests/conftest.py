"""What all tests share."""

from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, which no deadline knows of. Derandomized: a run never surprises.
settings.register_profile(
    "armslength", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("armslength")
