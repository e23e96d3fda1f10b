"""The fuzzer is guided by the modules that read."""

from importlib.util import find_spec

from audit.fuzzing.worker import READING, modules_without_guide


def test_the_reading_modules_exist_and_are_guides():
    assert all(find_spec(f"armslength.{name}") for name in READING)
    unguided = modules_without_guide()
    assert {"armslength", "armslength.noise.inversion", "armslength.ingest.encoding"} <= set(unguided)
    assert not {"armslength.ingest.sources", "armslength.sketches.sketch_file", "armslength.checks"} & set(
        unguided
    )
