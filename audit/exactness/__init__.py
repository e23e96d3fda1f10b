"""Exactness of the noise: two implementations on the same streams, the proved errors at their worst places, and how often levels pass on."""

from typing import NamedTuple

import numpy as np

from armslength.noise.quantile_tables import OCTAVES, PIECES
from audit.exactness.radii import Shares, level_1_shares, level_2_shares
from audit.exactness.rates import Rate, counted_rate, table_rate, windowed_rate
from audit.exactness.streams import LAWS, Agreement, compared, compared_at_once, random_streams
from audit.exactness.worst_places import Forced, forced_levels, scales, worst_streams
from audit.parallel import in_processes
from audit.sections import Check, Section

_COUNTED_SCALES = (2.0**34, 2.0**37, 2.0**40)
_WINDOWED_SCALES = (0.3, 1.0, 50.0, 1e6, 2.0**30, 2.0**40)
_TABLE_SCALES = (0.01, 0.3, 1.0, 5.0, 50.0, 256.0)
_MANY = 20_000
_RADII_SCALES = (0.01, 1.0, 1e6, 2.0**40)


class Sizes(NamedTuple):
    """How much is done: streams for each law and scale, further scales, borders, steps between pieces, words that are counted."""

    streams: int
    more_scales: int
    borders: int
    piece_step: int
    words: int


FULL, QUICK = Sizes(5000, 25, 1500, 2, 200_000_000), Sizes(40, 0, 20, 300, 2_000_000)


class Job(NamedTuple):
    """One law at one scale."""

    law: int
    scale: float
    seed: int
    sizes: Sizes


class Compared(NamedTuple):
    """Two implementations at one law and scale: on random streams, many draws at once, at the worst places, and forced levels."""

    random: Agreement
    at_once: Agreement
    worst: Agreement
    level_1: Forced
    level_2: Forced


def compare(job: Job) -> Compared:
    """All comparisons of streams at one law and scale."""
    law, generator = LAWS[job.law](job.scale), np.random.default_rng(job.seed)
    sizes = job.sizes
    return Compared(
        compared(law, random_streams(sizes.streams, generator)),
        compared_at_once(law, sizes.streams // 2, generator),
        compared(law, worst_streams(law, generator, sizes.borders)),
        *forced_levels(law, generator, sizes.borders),
    )


def shares(job: Job) -> tuple[Shares, Shares]:
    """The largest share of the proved errors of levels 1 and 2."""
    law, generator = LAWS[job.law](job.scale), np.random.default_rng(job.seed)
    pieces = range(job.seed % job.sizes.piece_step, OCTAVES * PIECES, job.sizes.piece_step)
    return level_1_shares(law, pieces, generator), level_2_shares(law, pieces, generator)


def counted(job: Job) -> Rate:
    """How often level 1 passes on."""
    return counted_rate(LAWS[job.law](job.scale), job.sizes.words, np.random.default_rng(job.seed))


def audit(quick: bool) -> Section:
    """Streams, worst places, radii and rates of both laws."""
    sizes = QUICK if quick else FULL
    chosen = scales(sizes.more_scales, seed=8)
    found = in_processes(compare, _jobs(chosen, sizes), "streams, twice")
    ratios = in_processes(shares, _jobs(_RADII_SCALES, sizes), "proved errors")
    level_1_rates = in_processes(counted, _jobs(_COUNTED_SCALES, sizes), "level 1")
    generator = np.random.default_rng(9)
    tables = [table_rate(law(scale)) for law in LAWS for scale in _TABLE_SCALES]
    windows = [
        windowed_rate(law(scale), n, sizes.words // 1000, generator)
        for law in LAWS
        for scale in _WINDOWED_SCALES
        for n in sorted({1, max(1, round(scale)), max(1, round(2 * scale))})
    ]
    rows = [
        *(_agreement_row(number, found) for number in range(len(LAWS))),
        *(
            _rate_row(job, rate)
            for job, rate in zip(_jobs(_COUNTED_SCALES, sizes), level_1_rates, strict=True)
        ),
    ]
    everything = _together(found)
    checks = (
        *_stream_checks(everything),
        *_radius_checks([first for first, _ in ratios], [second for _, second in ratios]),
        *_rate_checks(tables, level_1_rates, windows),
    )
    return Section(
        "Exactness of the noise",
        _words(everything, chosen, sizes),
        ("law", "what", "tried", "found"),
        tuple(rows),
        checks,
    )


def _jobs(chosen: tuple[float, ...] | list[float], sizes: Sizes) -> list[Job]:
    return [
        Job(law, scale, 1000 * law + number, sizes)
        for law in range(len(LAWS))
        for number, scale in enumerate(chosen)
    ]


def _together(found: list[Compared]) -> Compared:
    return Compared(
        sum((one.random for one in found), Agreement()),
        sum((one.at_once for one in found), Agreement()),
        sum((one.worst for one in found), Agreement()),
        sum((one.level_1 for one in found), Forced()),
        sum((one.level_2 for one in found), Forced()),
    )


def _agreement_row(law: int, found: list[Compared]) -> tuple[str, ...]:
    half = len(found) // len(LAWS)
    own = _together(found[law * half : (law + 1) * half])
    streams = own.random + own.at_once + own.worst
    return LAWS[law].__name__, "drawn by both", f"{streams.streams:,}", f"{streams.different} differ"


def _rate_row(job: Job, rate: Rate) -> tuple[str, ...]:
    found = f"{rate.uncertain:,} uncertain, {rate.predicted:,.0f} predicted"
    return LAWS[job.law].__name__, f"level 1 at scale 2^{np.log2(job.scale):.0f}", f"{rate.draws:,}", found


def _stream_checks(all_of_them: Compared) -> list[Check]:
    plain = all_of_them.random + all_of_them.at_once
    worst, levels = all_of_them.worst, (all_of_them.level_1, all_of_them.level_2)
    odd = all_of_them.random.odd + worst.odd
    return [
        Check(
            "both implementations draw the same integer from every random stream",
            plain.different == 0,
            f"{plain.different} of {plain.streams:,} differ",
        ),
        Check(
            "and from every stream at the hardest places",
            worst.different == 0 and worst.deep > 0,
            f"{worst.different} of {worst.streams:,} differ; {worst.deep:,} of these streams needed more than 63 bits",
        ),
        Check("every draw takes the specified number of words", odd == 0, f"{odd} do not"),
        *(
            Check(
                f"level {number} alone is never wrong at the hardest places",
                level.wrong == 0 and level.certain > 0,
                f"{level.wrong} wrong of {level.certain:,} answers; of the other {level.words - level.certain:,} it was not certain",
            )
            for number, level in enumerate(levels, start=1)
        ),
    ]


def _radius_checks(first: list[Shares], second: list[Shares]) -> list[Check]:
    checks = []
    for number, each in enumerate((first, second), start=1):
        found = sum(each, Shares())
        largest = max(found.radius, found.decision)
        checks.append(
            Check(
                f"the true error of level {number} is within its proved bound",
                largest <= 1,
                f"at most {found.radius:.6f} of the radius and {found.decision:.6f} of the deciding error, at {found.points:,} places",
            )
        )
    return checks


def _rate_checks(tables: list[Rate], level_1_rates: list[Rate], windows: list[Rate]) -> list[Check]:
    many = [rate for rate in (*level_1_rates, *windows) if rate.predicted > _MANY]
    return [
        Check(
            "level 0 passes on exactly the intervals that contain a change point",
            all(rate.uncertain == rate.predicted for rate in tables),
            f"in {len(tables)} tables",
        ),
        Check(
            "level 1 passes on as many as the radii predict (4.9 standard errors)",
            all(rate.fits() for rate in level_1_rates),
            ", ".join(f"{rate.uncertain / rate.predicted:.4f}" for rate in level_1_rates)
            + " of the prediction",
        ),
        Check(
            "so does level 2, in windows around change points",
            all(rate.fits() for rate in windows),
            f"{min(rate.uncertain / rate.predicted for rate in windows):.4f} to "
            f"{max(rate.uncertain / rate.predicted for rate in windows):.4f} of it in {len(windows)} windows",
        ),
        Check(
            f"no count above {_MANY:,} would fit 0.9 or 1.1 times the prediction",
            all(rate.has_teeth for rate in many),
            f"{len(many)} such counts of {len(level_1_rates) + len(windows)}",
        ),
    ]


def _words(everything: Compared, chosen: list[float], sizes: Sizes) -> str:
    total = (everything.random + everything.at_once + everything.worst).streams
    pieces = "every piece" if sizes.piece_step == 1 else f"one piece in {sizes.piece_step}"
    return (
        "A second implementation of a draw was written from docs/noise.md alone (`tests/reference/draws.py`): Python "
        "integers, tails of the law from series with every rounding counted, no inverse function, no float and no library. "
        f"Both implementations got the same {total:,} streams of bits at {len(chosen)} scales of each law from 0.01 to 2^40. "
        "Some streams are random; others follow a change point for up to 255 bits, begin with zeros or ones, or lie at the "
        "border of a piece. Levels 1 and 2 were also tested alone. The error of each level was measured in 60-digit decimals "
        f"at the ends and inside of {pieces}. In the far tail, the unrevealed bits of W use up almost all of the radius, so "
        f"the largest share is close to 1 but must not exceed it. Level 1 was counted on {sizes.words:,} random words at each "
        "scale. A correct count is outside its limits with probability 1e-6."
    )
