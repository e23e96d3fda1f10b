"""The bound in the sketch, without an engine: random orders, the kernel, the release's own door, and the best attack on it.

How many trials see weakened noise follows from the normal law of the ratio, as in test_membership.py.
"""

import math
from statistics import NormalDist

import numpy as np
import pytest
from audit.event_worlds import LIGHT_ITEMS, Attacker
from audit.membership import promise_of
from audit.membership_faults import WEAK, loosened, weakened
from audit.trade_off import Counts, trade_off
from audit.whole_path import FEWER_ROWS, LONGER, _scaled_down, all_stories
from scipy.special import ndtr

import armslength as al
from armslength.ingest.sketch_bound import longest_prefix
from armslength.ingest.sums import Sums
from armslength.ledger.ledger import open_account
from armslength.release.release import release
from statistical.limits import FALSE_ALARM, LIMIT

STORIES = [story for story in all_stories() if story.protocol.max_norm is not None]
REPLACED = next(story for story in STORIES if story.protocol.relation == "replace")
ALARM = FALSE_ALARM / len(STORIES)


def exact_values(story, world, blocks, bound):
    """A·x of every block: of each heavy person, in a random order, the first C rows, and of these the longest run."""
    transform, contribution = story.protocol.transform, story.protocol.contribution
    values = np.tile(transform.columns(LIGHT_ITEMS).sum(axis=1), (blocks, story.groups, 1)).astype(np.int64)
    if not world:
        return values
    which = np.repeat(np.arange(len(world)), [one.rows // FEWER_ROWS for one in world])
    orders = np.random.default_rng().random((blocks, len(which))).argsort(axis=1)
    events = which[orders[:, :contribution]]
    groups = np.array([one.group for one in world], dtype=np.int32)[events]
    columns = transform.signed_rows([one.item for one in world])[events]  # blocks x C x 1
    amounts = np.ones(events.shape, dtype=np.int64)
    table = np.empty((0, 2), dtype=np.int64)
    for block in range(blocks):
        table = longest_prefix(groups[block], columns[block], amounts[block], bound, table)
    entries = columns[:, :, 0].astype(np.int64)
    rows, signs = np.where(entries >= 0, entries, -1 - entries), np.where(entries >= 0, 1, -1)
    np.add.at(values, (np.arange(blocks)[:, None], groups, rows), signs * amounts)
    return values


def measured(story, blocks, fault):
    """The trade-off of so many trials of each world."""
    faulty = fault(story.protocol)
    fewer = _scaled_down(story, LONGER)
    promise, attacker, counts = promise_of(story.protocol), Attacker(fewer), []
    for world in story.worlds:
        values = exact_values(story, world, blocks, faulty.sketch_bound)
        sums = Sums(values.reshape(blocks * story.groups, -1), None, "events")
        released = release(faulty, sums, story.labels(blocks), open_account(al.NO_LEDGER, ""))
        counts.append(Counts.of(attacker.log_ratios(released.values.reshape(values.shape)), promise))
    return trade_off(*counts, promise, ALARM)


def trials_for(protocol):
    """How many trials see weakened noise all but surely, where neighbors are as far apart as can be."""
    promise, sigma = promise_of(protocol), protocol.law.scale
    distance, factor = math.sqrt(protocol.neighbors.sketch_radius_squared), math.exp(promise.epsilon)
    alarm = NormalDist().inv_cdf(1 - ALARM / (4 * len(promise.thresholds)))
    needed = []
    for threshold in promise.thresholds[promise.thresholds > 0]:
        place = threshold * sigma**2 / distance
        p, q = (ndtr((sign * distance / 2 - place) / (WEAK * sigma)) for sign in (1, -1))
        beyond = p - factor * q - promise.delta
        deviations = alarm * (math.sqrt(p) + factor * math.sqrt(q)) + LIMIT * math.sqrt(p + factor**2 * q)
        needed += [(deviations / beyond) ** 2] if beyond > 0 else []
    return math.ceil(1.2 * min(needed))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_no_curve_crosses_its_bound_and_faults_do(story):
    trials = trials_for(story.protocol)
    assert trials < 150_000
    assert not measured(story, trials, lambda protocol: protocol).crosses
    if story.tight:
        assert measured(story, trials, weakened).crosses
        assert measured(story, trials // 10, loosened).crosses


def test_replacing_a_person_reaches_the_bound():
    """From a length of 4 one way to a length of 4 the other way."""
    first, second = (
        exact_values(REPLACED, world, 5, REPLACED.protocol.sketch_bound) for world in REPLACED.worlds
    )
    moved = ((first - second) ** 2).sum(axis=(1, 2)).tolist()
    assert moved == [64] * 5 == [REPLACED.protocol.neighbors.sketch_radius_squared] * 5


def test_items_that_cancel_give_what_the_attacker_thinks():
    """Runs of a random walk that stay within 4, and none outside: the shares of all ends are those of the mixture."""
    story = next(story for story in STORIES if not story.tight)
    blocks = 20_000
    values = exact_values(story, story.second, blocks, story.protocol.sketch_bound).reshape(blocks, -1)
    expected = Attacker(_scaled_down(story, LONGER))._mixtures[1]
    seen = {key: int((values == key).all(axis=1).sum()) for key in expected}
    assert sum(seen.values()) == blocks
    for key, share in expected.items():
        assert abs(seen[key] - blocks * share) < LIMIT * math.sqrt(blocks * share * (1 - share)) + 1
