"""Membership: the likelihood-ratio test between two neighbors, for every transform and law, against the promise of (ε, δ)."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from attacks.membership import log_likelihoods, log_ratios
from numpy.typing import NDArray

import armslength as al
from armslength.progress import progress
from armslength.threads import available_threads
from armslength.transforms.hadamard_jl import FastJL
from audit.membership_cases import Case, all_cases
from audit.membership_dependence import DEPENDENCE_CASES, LinearTest, release_with_shared_noise
from audit.membership_faults import FAULTS, WEAK, Releaser, release, release_weakly
from audit.sections import Check, Section
from audit.trade_off import FALSE_ALARM, Counts, Promise, TradeOff, trade_off

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROWS_AT_ONCE = 1 << 17
CLOSE_EPSILON, CLOSE_DELTA = 0.95, 0.9  # how near the measured values must come where the bound is tight
QUICK_SHARE, QUICK_STEP = 40, 7  # a quick run makes one release in 40, of one case in 7
HEADS = (
    "case",
    "ε",
    "measured",
    "at least",
    "δ",
    "measured, ± standard error",
    "at least",
    f"noise × {WEAK}: ε at least",
)


@dataclass(frozen=True)
class Found:
    """What was measured of a case, as it is and with weakened noise."""

    case: str
    promise: Promise
    tight: bool
    rows: int
    honest: TradeOff
    weakened: TradeOff | None


def audit(quick: bool) -> Section:
    """Every case, as it is and with 0.8 of its noise."""
    cases = all_cases()
    share = QUICK_SHARE if quick else 1
    alarm = FALSE_ALARM / (len(cases) + len(DEPENDENCE_CASES))
    with ProcessPoolExecutor(available_threads(), multiprocessing.get_context("spawn")) as pool:
        chosen = range(0, len(cases), QUICK_STEP if quick else 1)
        jobs = [pool.submit(measured, number, share, alarm) for number in chosen]
        found = []
        with progress("membership", len(jobs), "cases", show=True) as advance:
            for job in jobs:
                found.append(job.result())
                advance(1)
        faults = list(pool.map(partial(fault_is_seen, share=share, alarm=alarm), FAULTS))
        dependence = list(pool.map(partial(dependence_is_seen, share=share, alarm=alarm), DEPENDENCE_CASES))
    return _section(found, faults, dependence, quick=quick)


def measured(number: int, share: int, alarm: float) -> Found:
    """The trade-off of one case, by its number, and of the same with weakened noise where it is tight."""
    case = all_cases()[number]
    rows = case.rows // share
    honest = case_trade_off(case, rows, alarm)
    faulty = case_trade_off(case, rows, alarm, release_weakly) if case.tight else None
    return Found(case.name, promise_of(case.protocol), case.tight, rows, honest, faulty)


def promise_of(protocol: al.Protocol) -> Promise:
    """What the protocol promises, in floats."""
    return Promise(float(protocol.epsilon), float(protocol.released_delta))


def case_trade_off(
    case: Case, rows: int, alarm: float, releaser: Releaser = release, *, linear: bool = False
) -> TradeOff:
    """The measured trade-off of a case.

    Args:
        case: The neighbors and their protocol, whose law the attacker assumes, also where a fault makes it another.
        rows: How many releases of each neighbor.
        alarm: The probability, at most, that a true promise is said to be crossed.
        releaser: How rows are released: as everybody does, or with a fault.
        linear: Whether the attacker looks at all coordinates with the linear test, which does not take their noise to be independent.
    """
    promise = promise_of(case.protocol)
    test = LinearTest(case, releaser).statistic if linear else partial(_likelihood_statistic, case)
    counts = [
        sum(
            (Counts.of(test(released), promise) for released in _released(case, world, rows, releaser)),
            start=Counts(np.zeros(len(promise.thresholds), dtype=np.int64), 0),
        )
        for world in (case.x, case.other)
    ]
    return trade_off(counts[0], counts[1], promise, alarm)


def _released(case: Case, world: NDArray[np.generic], rows: int, releaser: Releaser) -> Iterator[al.Sketches]:
    """So many releases of a world, some at a time."""
    for start in range(0, rows, ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, rows - start)
        yield releaser(case, np.broadcast_to(world, (count, len(world))).copy())


def _likelihood_statistic(case: Case, released: al.Sketches) -> Floats:
    """The attacker's statistic: the likelihood ratio, or what is nearest to it."""
    if case.protocol.noise_site == "input":
        return input_noise_statistic(case, released.values)
    clear = [al.sketch_in_clear(case.protocol, each[None], items=case.items) for each in (case.x, case.other)]
    return log_ratios(released, clear[0], clear[1])


def input_noise_statistic(case: Case, values: Integers) -> Floats:
    """The best test of P·(H·D·x + noise) that can be computed.

    Where P has full column rank, what is published determines H·D·x + noise, and the test is the likelihood ratio itself. Else
    it is that of a normal law with the same mean and covariance: any statistic is bound by the promise, this one nearly the best.
    """
    transform, law = case.protocol.transform, case.protocol.law
    if not isinstance(transform, FastJL):
        raise TypeError("noise on the input is for FastJL alone")
    P = transform.last_step(np.eye(transform.padded_dim, dtype=np.int64)).T
    first, second = transform.hadamard_step(np.stack([case.x, case.other]))
    if np.linalg.matrix_rank(P) == transform.padded_dim:
        inner = np.rint(values @ np.linalg.pinv(P).T).astype(np.int64)
        if not np.array_equal(transform.last_step(inner), values):
            raise ArithmeticError("what is published must determine the noise")
        pairs = zip(inner.T.copy(), first.tolist(), second.tolist(), strict=True)
        ratios = [log_likelihoods(law, u, b) - log_likelihoods(law, u, a) for u, a, b in pairs]
        return np.asarray(np.sum(ratios, axis=0))
    shift, middle = P @ (second - first), P @ (first + second) / 2
    weights = np.linalg.solve(law.second_moment * (P @ P.T), shift)
    return np.asarray((values - middle) @ weights)


def fault_is_seen(fault: str, share: int, alarm: float) -> bool:
    """Whether the audit refutes the promise under a fault."""
    name, releaser = FAULTS[fault]
    case = next(case for case in all_cases() if case.name == name)
    return case_trade_off(case, case.rows // share, alarm, releaser).crosses


def dependence_is_seen(name: str, share: int, alarm: float) -> tuple[bool, bool]:
    """Whether the linear test refutes the promise of a case: as it is, and where all coordinates of a row share their noise."""
    case = next(case for case in all_cases() if case.name == name)
    measured_of = partial(case_trade_off, case, case.rows // share, alarm, linear=True)
    return measured_of().crosses, measured_of(release_with_shared_noise).crosses


def _section(
    found: list[Found], faults: list[bool], dependence: list[tuple[bool, bool]], *, quick: bool
) -> Section:
    smallest = min(one.rows for one in found)
    return Section(
        "Membership: the best test between two neighbors",
        "The attacker knows the matrix, the law and both neighbors, and computes the exact likelihood ratio of every release. "
        f"The audit covers {len(found)} of {len(all_cases())} cases: every transform with every law, with at least {smallest:,} "
        "releases of each neighbor by `al.release`. Neighbors differ by the radius where the matrix is most sensitive. "
        "The attacker's trade-off curve is measured at 97 fixed thresholds from −1.5ε to 1.5ε, in both directions. Exact "
        f'(Clopper-Pearson) bounds hold for all thresholds of all cases together, except with probability {FALSE_ALARM:g}. "At '
        'least" is such a lower bound; "measured" is the estimate from the events at ±ε, both directions together.\n\n'
        "Noise on the input of FastJL is attacked through the published values. With six rows and four columns P can be "
        "inverted, and the test is exact; with fewer rows the test uses the normal law with the same covariance. The audit "
        f"also tests releases with {WEAK} of the noise scale, while the attacker still assumes the promised law. The "
        "likelihood ratio assumes that coordinates have independent noise, so it could miss dependent noise. A second test, "
        f"in {len(dependence)} of the cases, measures the covariance of all coordinates and weights them accordingly.",
        HEADS,
        tuple(map(_row, found)),
        (
            _never_crosses(found),
            *(() if quick else _comes_close([one for one in found if one.tight])),
            *(
                Check(f"a fault is detected: {fault}", seen, "crosses" if seen else "does not cross")
                for fault, seen in zip(FAULTS, faults, strict=True)
            ),
            _independent(dependence),
        ),
    )


def _never_crosses(found: list[Found]) -> Check:
    below = sum(not one.honest.crosses for one in found)
    return Check(
        "no curve crosses its bound",
        below == len(found),
        f"{below} of {len(found)} stay below; there are {len(all_cases())} cases",
    )


def _independent(dependence: list[tuple[bool, bool]]) -> Check:
    honest = sum(not crosses for crosses, _ in dependence)
    faulty = sum(crosses for _, crosses in dependence)
    return Check(
        "a test for dependent noise stays below the bound, and crosses it if coordinates share their noise",
        honest == faulty == len(dependence) > 0,
        f"{honest} of {len(dependence)} stay below; with shared noise {faulty} of {len(dependence)} cross",
    )


def _comes_close(tight: list[Found]) -> tuple[Check, ...]:
    """What needs the full number of releases."""
    pure = [one.honest.epsilon_low / one.promise.epsilon for one in tight if one.promise.delta == 0]
    deltas = [one.honest.delta / one.promise.delta for one in tight if one.promise.delta > 0]
    seen = sum(one.weakened is not None and one.weakened.crosses for one in tight)
    return (
        Check(
            f"where Laplace noise is tight, the lower bound on ε is at least {CLOSE_EPSILON} of the promise",
            min(pure) >= CLOSE_EPSILON,
            f"from {min(pure):.3f} to {max(pure):.3f}",
        ),
        Check(
            f"where Gaussian noise is tight, the measured δ is at least {CLOSE_DELTA} of the promise",
            min(deltas) >= CLOSE_DELTA,
            f"from {min(deltas):.3f} to {max(deltas):.3f}",
        ),
        Check(
            f"noise at {WEAK} of its scale crosses in every tight case",
            seen == len(tight),
            f"{seen} of {len(tight)}",
        ),
    )


def _row(one: Found) -> tuple[str, ...]:
    honest, delta = one.honest, one.promise.delta
    return (
        one.case,
        f"{one.promise.epsilon:g}",
        f"{honest.epsilon:.3f}" if honest.epsilon > 0 else "below 0",
        f"{honest.epsilon_low:.3f}",
        f"{delta:g}",
        f"{honest.delta:.5f} ± {honest.delta_error:.5f}" if delta else "",
        f"{honest.delta_low:.5f}" if delta else "",
        "" if one.weakened is None else f"{one.weakened.epsilon_low:.3f}",
    )
