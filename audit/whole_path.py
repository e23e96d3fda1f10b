"""Membership through the whole path: an event table on disk, bounded, projected, with noise, saved and loaded."""

import multiprocessing
import secrets
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import armslength as al
from armslength.ingest.contributions import KEY_BYTES
from armslength.ingest.event_columns import EventColumns
from armslength.ingest.event_table import TableJob, public_groups_of
from armslength.ledger.ledger import open_account
from armslength.progress import progress
from armslength.releasing.release import release_sums
from armslength.threads import available_threads
from audit.event_worlds import LIGHT_ITEMS, Attacker, Held, Story, World, write_events
from audit.membership import promise_of
from audit.membership_faults import WEAK, weakened, without_the_undercount
from audit.sections import Check, Section
from audit.trade_off import FALSE_ALARM, Counts, TradeOff, trade_off

Integers = NDArray[np.int64]

BLOCKS = 1000  # trials of one release
RELEASES, QUICK_RELEASES = 100, 1  # of each world
RELEASES_AT_ONCE = 4
CLOSE = 0.85  # of ε: how near the lower bound must come
FEWER_ROWS = 25  # a fault is tried on tables with fewer rows for each person, by this factor
HONEST, WEAKLY, UNBOUNDED = "as it is", f"noise × {WEAK}", "twice the contribution is let through"
EVERY_GROUP, UNCOVERED = "a vote in every group", "no noise for the undercount"


@cache
def all_stories() -> tuple[Story, ...]:
    """Every pair of worlds, in the order of the table: of amounts, then of votes."""
    transform = al.SparseJL(sketch_dim=4, sparsity=1, seed="whole path")
    here, opposite, elsewhere = _three_items(transform)
    protocol = partial(al.Protocol, transform, epsilon=2, unit="one patient")
    amounts, vote = partial(protocol, al.Counts(4)), partial(protocol, al.Votes())
    one_item = (Held(0, here, 1000), Held(1, here, 700), Held(2, here, 300))
    several = (Held(0, here, 800), Held(0, elsewhere, 200), Held(1, here, 600), Held(1, elsewhere, 400))
    before, after = ((Held(0, item, 1200), Held(1, item, 800)) for item in (here, opposite))
    one, other = ((Held(0, item, 2000),) for item in (here, opposite))
    like_the_others, beside = (Held(0, item, 1000) for item in (LIGHT_ITEMS[0], _beside(transform)))
    groups = {"prefix": [LIGHT_ITEMS[0][0]], "group": ["one"]}

    def margins(limit: int) -> al.Protocol:
        return protocol(al.Votes("0.02", item_groups=al.ItemGroups(groups, "0.5", limit)))

    return (
        Story("amounts, add or remove, one item in three groups, 2,000 rows", amounts(), 3, (), one_item),
        Story("amounts, add or remove, two items in two groups, 2,000 rows", amounts(), 2, (), several),
        Story("amounts, replace, two groups, 2,000 rows", amounts(relation="replace"), 2, before, after),
        Story(
            "votes, replace, one item by its opposite, 2,000 rows", vote(relation="replace"), 1, one, other
        ),
        Story(
            "votes, add or remove, with people, Q and F", protocol(al.Votes("0.5")), 1, (), (like_the_others,)
        ),
        Story("votes, add or remove, one group of three", vote(), 3, (), one_item, tight=False),
        Story(
            "votes, add or remove, with margins, two item groups",
            margins(limit=2),
            1,
            (),
            (like_the_others, beside),
        ),
        Story(
            "votes, add or remove, with margins, two item groups of which one counts in full",
            margins(limit=1),
            1,
            (),
            (like_the_others, beside),
            tight=False,
        ),
    )


def _three_items(transform: al.SparseJL) -> tuple[str, str, str]:
    """(an item, one of the same bin with the opposite sign, one of another bin): the public matrix says which."""
    names = [f"I{number:02}" for number in range(20)]
    columns = transform.columns(names).toarray()
    here, opposite = next(
        pair for pair in combinations(range(20), 2) if (columns[:, pair[0]] == -columns[:, pair[1]]).all()
    )
    elsewhere = next(n for n in range(20) if columns[:, n] @ columns[:, here] == 0)
    return names[here], names[opposite], names[elsewhere]


def _beside(transform: al.SparseJL) -> str:
    """An item of another item group in the bin of the light person's items, with their sign: so F moves by all of q."""
    names = [*LIGHT_ITEMS, *(f"B{number}" for number in range(99))]
    columns = transform.columns(names).toarray()
    first, second, *others = map(int, columns[:, 0] @ columns)
    if (first, second) != (1, 1):
        raise ValueError("the light person's items must fall in one bin")
    return names[2 + others.index(1)]


@dataclass(frozen=True)
class Job:
    """Some releases of one world.

    Attributes:
        story: The number of the story.
        world: 0 or 1.
        fault: What is wrong with the releases.
        events: The table.
        releases: How many there are.
    """

    story: int
    world: int
    fault: str
    events: Path
    releases: int


def audit(quick: bool) -> Section:
    """Every story as it is, those that are tight with weakened noise, and three with a bound that is not kept."""
    stories = all_stories()
    plan = all_trials()
    releases = QUICK_RELEASES if quick else RELEASES
    alarm = FALSE_ALARM / len(stories)
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            replace(job, releases=min(RELEASES_AT_ONCE, releases))
            for story, fault in plan
            for job in _written(Path(folder), story, fault)
            for _ in range(0, releases, RELEASES_AT_ONCE)
        ]
        counts: dict[tuple[int, str, int], Counts] = {}
        with (
            ProcessPoolExecutor(available_threads(), multiprocessing.get_context("spawn")) as pool,
            progress("whole path", len(plan) * 2 * releases, "releases", show=True) as advance,
        ):
            for job, some in zip(jobs, pool.map(done, jobs), strict=True):
                key = job.story, job.fault, job.world
                counts[key] = counts[key] + some if key in counts else some
                advance(job.releases)
        refused = weak_file_is_refused(Path(folder))
    found = {
        (story, fault): trade_off(
            counts[story, fault, 0], counts[story, fault, 1], promise_of(stories[story].protocol), alarm
        )
        for story, fault in plan
    }
    return _section(found, counts[0, HONEST, 0].total, refused=refused, quick=quick)


def all_trials() -> list[tuple[int, str]]:
    """The number of a story and what is wrong with its releases, in the order of the table."""
    stories = all_stories()
    numbers = range(len(stories))
    trials = [(number, HONEST) for number in numbers]
    trials += [(number, WEAKLY) for number in numbers if stories[number].tight]
    one_group = next(number for number in numbers if not stories[number].tight)
    return [*trials, (0, UNBOUNDED), (one_group, EVERY_GROUP), (numbers[-1], UNCOVERED)]


def _written(folder: Path, number: int, fault: str) -> list[Job]:
    """The event tables of both worlds of a story, and the job of releasing each."""
    story = _scaled_down(all_stories()[number], fault)
    jobs = []
    for number_of_world, world in enumerate(story.worlds):
        events = folder / f"{number} {len(fault)} {number_of_world}.parquet"
        if not events.exists():
            write_events(events, story, world, BLOCKS)
        jobs.append(Job(number, number_of_world, fault, events, 0))
    return jobs


def _scaled_down(story: Story, fault: str) -> Story:
    """The story as it is; with fewer rows for each person where a fault is tried, which changes nothing but the time."""
    if fault == HONEST:
        return story
    story = replace(story, has_one_id=fault != EVERY_GROUP)

    def fewer(world: World) -> World:
        return tuple(replace(one, rows=one.rows // FEWER_ROWS) for one in world)

    return replace(story, first=fewer(story.first), second=fewer(story.second))


def done(job: Job) -> Counts:
    """The attacker's counts of a job."""
    story = _scaled_down(all_stories()[job.story], job.fault)
    attacker, promise = Attacker(story), promise_of(story.protocol)
    statistics = [
        attacker.log_ratios(released_values(story, job.events, BLOCKS, job.fault))
        for _ in range(job.releases)
    ]
    return Counts.of(np.concatenate(statistics), promise)


def released_values(story: Story, events: Path, blocks: int, fault: str = HONEST) -> Integers:
    """What one release gives to everybody, blocks x groups x numbers: the sketch, then T − Q, Q and F, and margins, if there are any."""
    labels = story.labels(blocks)
    protocol = story.protocol
    if fault == WEAKLY:
        sketches = _released(events, weakened(protocol), labels)
    elif fault == UNCOVERED:
        sketches = _released(events, without_the_undercount(protocol), labels)
    elif fault == UNBOUNDED:
        groups, columns = public_groups_of("where", labels, None), EventColumns("who", "what", "where", None)
        twice = al.Protocol(protocol.transform, al.Counts(8), epsilon=2, unit="one patient")
        sums = TableJob.of(events, twice, columns, groups, threads=1).sums(secrets.token_bytes(KEY_BYTES))
        sketches = release_sums(protocol, sums, labels, open_account(al.NO_LEDGER, ""))
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "sketches.parquet"
            _released(events, protocol, labels).save(file)
            sketches = al.load(file)
    more = []
    if sketches.spread is not None and sketches.totals is not None:
        more += [(sketches.totals - sketches.spread[:, 0])[:, None], sketches.spread]
    more += [] if sketches.margins is None else [sketches.margins]
    return np.hstack([sketches.values, *more]).reshape(blocks, story.groups, -1)


def _released(events: Path, protocol: al.Protocol, labels: list[str]) -> al.Sketches:
    return al.release(
        protocol,
        events,
        person="who",
        item="what",
        group="where",
        public_groups=labels,
        ledger=al.NO_LEDGER,
        threads=1,
    )


def weak_file_is_refused(folder: Path) -> bool:
    """Whether a file that says that its noise is weaker than its ε asks for is refused."""
    protocol = weakened(al.Protocol(al.Identity(input_dim=2), epsilon=1))
    al.release(protocol, np.zeros((1, 2), dtype=np.int64), ledger=al.NO_LEDGER).save(folder / "weak.parquet")
    try:
        al.load(folder / "weak.parquet")
    except al.ArmslengthError:
        return True
    return False


def _section(found: dict[tuple[int, str], TradeOff], trials: int, *, refused: bool, quick: bool) -> Section:
    stories = all_stories()
    honest = {number: one for (number, fault), one in found.items() if fault == HONEST}
    faulty = {key: one for key, one in found.items() if key[1] != HONEST}
    below = sum(not one.crosses for one in honest.values())
    pure = [
        one.epsilon_low / promise.epsilon
        for number, one in honest.items()
        if stories[number].tight and not (promise := promise_of(stories[number].protocol)).delta
    ]
    seen = sum(one.crosses for one in faulty.values())
    checks = [
        Check("no curve crosses its bound", below == len(honest), f"{below} of {len(honest)} stay below"),
        Check(
            "a file whose noise is weaker than its ε asks for is refused",
            refused,
            "refused" if refused else "read",
        ),
    ]
    if not quick:
        checks += [
            Check(
                f"where Laplace noise is tight, the lower bound on ε is at least {CLOSE} of the promise",
                min(pure) >= CLOSE,
                f"from {min(pure):.3f} to {max(pure):.3f}",
            ),
            Check("every fault crosses", seen == len(faulty), f"{seen} of {len(faulty)}"),
        ]
    return Section(
        "Membership through the whole path",
        f"An event table is written as Parquet, released by `al.release`, saved and loaded; neighbors differ by one person with two thousand rows in several "
        f"groups, of which the protocol lets four through, or one vote. A table has {BLOCKS} blocks of groups, each with such a person of its own, so a release is {BLOCKS} independent "
        f"trials: {trials:,} of each neighbor. The attacker knows everybody's events; which of the person's rows were taken he cannot know, and his likelihood is the exact "
        f"mixture over all orders of them, and over the groups in which the person may vote. Thresholds and confidence are as above, {FALSE_ALARM:g} for all stories together. ε = 2 was chosen so that the bound is nearly reached "
        f"with so many trials. The number of people, Q, F and margins are attacked together with the sketches of the same release. What votes add up to is computed by the tests' own reference. Faults are tried: noise of {WEAK} of its scale in every story whose neighbors nearly reach the bound, a release that lets twice the contribution through, "
        f"one where a person votes in every group, and one whose noise of margins does not cover the undercount. "
        f"Persons have a {FEWER_ROWS}th of the rows there, and what is released is not saved and loaded: a file with weak noise would be refused, which is a claim of its own.",
        ("story", "", "ε", "measured", "at least", "δ", "measured, ± standard error"),
        tuple(_row(stories[number], fault, one) for (number, fault), one in found.items()),
        tuple(checks),
    )


def _row(story: Story, fault: str, one: TradeOff) -> tuple[str, ...]:
    promise = promise_of(story.protocol)
    return (
        story.name,
        fault,
        f"{promise.epsilon:g}",
        f"{one.epsilon:.3f}" if one.epsilon > 0 else "below 0",
        f"{one.epsilon_low:.3f}",
        f"{promise.delta:g}",
        f"{one.delta:.5f} ± {one.delta_error:.5f}" if promise.delta else "",
    )
