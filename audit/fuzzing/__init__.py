"""Hostile files: every reader under a fuzzer that is guided by coverage, each in a process of its own and under limits."""

from audit.sections import Section


def audit(quick: bool) -> Section:
    """Runs every target."""
    from audit.fuzzing.run import section_of  # noqa: PLC0415  # a worker must not have imported what it instruments

    return section_of(quick=quick)
