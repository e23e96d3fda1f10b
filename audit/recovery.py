"""Sparse recovery at full size: `examples/attacks/sparse_recovery.py` over thousands of persons."""

import math
from typing import NamedTuple

import numpy as np
from attacks.sparse_recovery import CHANCE, EPSILON, HELD, ITEMS, SKETCH, TRANSFORMS, attacked, crowd, persons

from audit.false_alarms import LIMIT, error_of_share
from audit.parallel import in_processes
from audit.sections import Check, Section

_AT_ONCE = 250
_CROWD = 4000
_HIDES_NOBODY = 10_000


class Job(NamedTuple):
    """Some persons behind one transform; ε is None without noise."""

    transform: str
    epsilon: float | None
    persons: int
    seed: int


def found_items(job: Job) -> int:
    """How many items were found, of all persons."""
    people = persons(job.persons, np.random.default_rng(job.seed))
    return int(attacked(TRANSFORMS[job.transform](), people, job.epsilon).sum())


def audit(quick: bool) -> Section:
    """Without noise, at ε = 1, and at an ε that hides nobody."""
    # What is found or not at a glance needs few persons; what is compared with chance needs many.
    blocks = {None: 1, EPSILON: 1 if quick else 16, _HIDES_NOBODY: 1}
    settings = [(name, epsilon) for name in TRANSFORMS for epsilon in (None, EPSILON, _HIDES_NOBODY)]
    jobs = [
        Job(name, epsilon, _AT_ONCE, 100 * number + block)
        for number, (name, epsilon) in enumerate(settings)
        for block in range(blocks[epsilon])
    ]
    counts = in_processes(found_items, jobs, "sparse recovery")
    rows, checks = [], []
    for name, epsilon in settings:
        own = [count for job, count in zip(jobs, counts, strict=True) if job[:2] == (name, epsilon)]
        found, people = sum(own), len(own) * _AT_ONCE
        noise = "none" if epsilon is None else f"ε = {epsilon:,}"
        rows.append((name, noise, f"{people:,}", f"{found / people:.3f} of {HELD}", f"{CHANCE:.3f}"))
        checks.append(_judged(name, epsilon, found, people))
    checks += _crowd_checks(400 if quick else 4000)
    return Section(
        "Sparse recovery",
        f"One person with {HELD} of {ITEMS:,} items is the only person behind a sketch of {SKETCH} numbers. The attacker knows "
        f"the matrix and picks the {HELD} columns that orthogonal matching pursuit finds. Guessing {HELD} items at random gets "
        f"{CHANCE:.2f} right on average. The test that the mean is at chance allows 4.9 standard errors (1e-6). The same "
        f"attacker can see a large count, as intended: it is about a crowd of {_CROWD:,} people, and a crowd with one person "
        "less looks the same, up to ε.",
        ("transform", "noise", "people", "items found", "by chance"),
        tuple(rows),
        tuple(checks),
    )


def _judged(name: str, epsilon: float | None, found: int, people: int) -> Check:
    mean = found / people
    if epsilon is None:
        return Check(
            f"{name}: without noise the attack finds almost all items",
            mean > 0.99 * HELD,
            f"{mean:.3f} of {HELD}",
        )
    if epsilon == EPSILON:
        # items from a hat: a hypergeometric count, whose variance is below its mean
        spread = LIMIT * math.sqrt(CHANCE / people)
        return Check(
            f"{name}: at ε = {epsilon:g} it finds no more than by chance, and no more than e^ε times that",
            mean <= CHANCE + spread and mean <= math.exp(epsilon) * CHANCE,
            f"{mean:.3f} of {HELD}; chance is {CHANCE:.3f} ± {spread:.3f}",
        )
    return Check(
        f"{name}: the attack works through weak noise (ε = {epsilon:,})",
        mean > 10 * CHANCE,
        f"{mean:.2f} of {HELD}",
    )


def _crowd_checks(releases: int) -> list[Check]:
    transform = TRANSFORMS["SparseJL"]()
    (seen, larger), (_, smaller) = (crowd(transform, size, releases) for size in (_CROWD, _CROWD - 1))
    # The best cut between the two means: how often it is right about the one person.
    right = float((larger > _CROWD - 0.5).mean() + (smaller <= _CROWD - 0.5).mean()) / 2
    allowed = 1 / (1 + math.exp(-EPSILON))
    return [
        Check(
            f"an item of {_CROWD:,} people is found: a sketch shows crowds",
            seen > 0.99,
            f"in {seen:.1%} of {releases:,} releases",
        ),
        Check(
            "guesses between 4,000 and 3,999 people are right no more often than e^ε/(1+e^ε)",
            right <= allowed + LIMIT * error_of_share(allowed, 2 * releases),
            f"{right:.1%}; ε allows {allowed:.1%}",
        ),
    ]
