"""A rehearsal on public or made-up data: releases of votes over a grid of ε and k, beside the truth, and counted by no ledger."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import armslength as al
from armslength.demo import generated_hospitals
from armslength.errors import ParameterError
from armslength.progress import progress
from armslength.reporting.findings import MOST_PARTIES

BANNER = "REHEARSAL: made-up or public data, no privacy was spent"
LEVEL = 0.95
RUNS = 3
_ENOUGH = 0.9  # the share of the pairs that differ, or of the groups, that a good setting shows
_NO_NOISE = (
    10_000,
    4096,
    "0.5",
)  # ε and its share: noise of a thousandth of a vote; and the largest sketch that tells how far chance reaches
_MOST_EVENTS = 10**7  # of made-up parties: a few GB

Point = dict[str, Any]
_Groups = set[frozenset[str]]
_Answers = tuple[NDArray[np.bool_], _Groups]  # the pairs that differ, above the diagonal, and the groups


@dataclass(frozen=True, eq=False)
class PublicData:
    """Events that anybody may see."""

    source: Any  # as `al.release` takes it
    columns: dict[str, Any]  # its person, item, group and public_groups
    regions: NDArray[np.int64] | None = None  # the true group of each party, where data is made up

    def release(self, protocol: al.Protocol) -> al.Sketches:
        """One row for each party, with new noise."""
        return al.release(protocol, self.source, ledger=al.NO_LEDGER, progress=False, **self.columns)


def made_up(parties: int = 24, people: int = 700, items_per_person: int = 3, seed: int = 2026) -> PublicData:
    """Made-up hospitals in four regions, as in the demo. The seed is for the data; noise has no seed."""
    if parties * people * items_per_person > _MOST_EVENTS:
        raise ParameterError(
            f"parties · people · items_per_person must be at most {_MOST_EVENTS:,}",
            "parties",
            "people",
            "items_per_person",
        )
    hospitals = generated_hospitals(parties, (people, people), items_per_person, seed)
    labels = [hospital.name for hospital in hospitals]
    tables = [
        hospital.visits.append_column("group", pa.array([hospital.name] * len(hospital.visits)))
        for hospital in hospitals
    ]
    columns = {"person": "patient", "item": "code", "group": "group", "public_groups": labels}
    regions = np.array([hospital.region for hospital in hospitals])
    return PublicData(pa.concat_tables(tables), columns, regions)


def protocol_of(epsilon: Any, sketch_dim: int, share: Any) -> al.Protocol:
    """A protocol of votes with a new public matrix; without ε, one with next to no noise."""
    if epsilon is None:
        epsilon, sketch_dim, share = _NO_NOISE
    transform = al.SparseJL(sketch_dim=sketch_dim)
    return al.Protocol(transform, al.Votes(total_share=share), epsilon=epsilon, unit="one person")


@dataclass(frozen=True)
class Rehearsal:
    """What answers would look like.

    Attributes:
        points: One row for each point of the grid, with means over all runs, after the one without noise, whose ε is None. Pairs
            are found to differ, all together; no two parties of a group are. The right ones are true.
        pairs: How many pairs there are.
        differ: How many truly differ: as made up, or as far as it is found without noise.
        groups: How many true groups of several parties there are: as made up, or found without noise.
    """

    points: list[Point]
    pairs: int
    differ: int
    groups: int

    @property
    def chosen(self) -> Point:
        """The point with the smallest ε at which enough pairs are found to differ; else the one with most of them."""
        grid = [point for point in self.points if point["epsilon"]]
        return self._smallest("right", self.differ) or max(grid, key=lambda at: float(at["right"]))

    @property
    def advice(self) -> str:
        """What to do, in words."""
        if not self.differ:
            return (
                "Even without noise no pair is found to differ. A larger ε would not help; more people may."
            )
        count = f"{self.chosen['right']:.4g} of {self.differ:,} pairs that differ are found."
        if not self._smallest("right", self.differ):
            remedy = "Try a larger ε, or parties with more people."
            return f"No point of this grid shows enough. The best is {setting_text(self.chosen)}: {count} {remedy}"
        text = f"Choose {setting_text(self.chosen)}, the smallest ε of this grid that shows enough: {count}"
        groups = self._smallest("right_groups", self.groups)
        needs = f"need {setting_text(groups)}" if groups else "are not found in this grid"
        return f"{text} The {self.groups} groups {needs}." if self.groups else text

    def _smallest(self, name: str, truth: int) -> Point | None:
        """The point with the smallest ε, and then the smallest sketch, that shows enough of the truth."""
        enough = [at for at in self.points if at["epsilon"] and truth and at[name] >= _ENOUGH * truth]
        enough.sort(key=lambda at: (float(at["epsilon"]), at["sketch_dim"], -at[name]))
        return enough[0] if enough else None


def setting_text(point: Point) -> str:
    """The settings of a point."""
    return f"ε = {point['epsilon']}, k = {point['sketch_dim']}"


def rehearse(data: PublicData, epsilons: Sequence[str], dims: Sequence[int], share: str) -> Rehearsal:
    """Releases and answers for all ε and k, beside the truth; all settings are checked before."""
    parties = data.columns["public_groups"]
    if not 2 <= len(parties) <= MOST_PARTIES:
        raise ParameterError(f"a rehearsal must have 2 to {MOST_PARTIES} parties, got {len(parties)}")
    settings = [(None, _NO_NOISE[1]), *product(epsilons, dims)]
    protocols = [protocol_of(*setting, share) for setting in settings]
    if not protocols[-1].total_share:
        raise ParameterError("total_share must be above 0 to compare profiles, got 0", "total_share")
    answers = []
    with progress("rehearsal", len(protocols), "settings", show=True) as advance:
        for protocol in protocols:
            answers.append([_answers(data.release(protocol)) for _ in range(RUNS)])
            advance(1)
    truth = answers[0][0]
    if data.regions is not None:
        made = [np.array(parties)[data.regions == region].tolist() for region in np.unique(data.regions)]
        groups = {frozenset(labels) for labels in made if len(labels) > 1}
        truth = np.triu(data.regions[:, None] != data.regions), groups
    points = []
    for (epsilon, dim), runs in zip(settings, answers, strict=True):
        means = np.mean([_counts(run, truth) for run in runs], axis=0).round(1).tolist()
        counts = zip(("found", "right", "groups", "right_groups"), means, strict=True)
        points.append({"epsilon": epsilon, "sketch_dim": dim, **dict(counts)})
    return Rehearsal(points, len(parties) * (len(parties) - 1) // 2, int(truth[0].sum()), len(truth[1]))


def _answers(sketches: al.Sketches) -> _Answers:
    """The pairs that differ, and the groups in which none does."""
    resolved = al.distances(sketches, about="populations").resolved(LEVEL, simultaneous=True)
    try:
        groups = al.cluster(sketches, level=LEVEL).groups()
    except al.NotResolvableError:  # too few parties have enough people
        groups = ()
    return np.triu(resolved, 1), set(map(frozenset, groups))


def _counts(answer: _Answers, truth: _Answers) -> tuple[int, int, int, int]:
    """How many pairs are found to differ, how many of those do, and the same for groups."""
    (pairs, groups), (differ, true_groups) = answer, truth
    return int(pairs.sum()), int((pairs & differ).sum()), len(groups), len(groups & true_groups)
