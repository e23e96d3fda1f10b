"""What changed between two releases of the same parties."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from armslength import plots
from armslength.answers.pairs import (
    DIFFER,
    INCONCLUSIVE,
    Answer,
    alike_limit,
    answer_note,
    checked_sketches,
    measure_words,
    measures,
    verdicts,
)
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import checked_pair, clear_note, squared_norms
from armslength.estimates.estimate import Estimate
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.questions import (
    COUNTS,
    POPULATIONS,
    question,
    similarities_about,
    squared_distances_about,
)
from armslength.results import Column, heading, line, sentences
from armslength.sketches.sketches import Sketches

_SAME_PEOPLE = "people who are in both releases are assumed not to tend to change places"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Drift(Answer):
    """What changed between two releases, party by party.

    The verdict says whether before and after differ. With probability at least `level` all verdicts are true (with `each`, each by itself).

    Attributes:
        labels: The parties that both releases have, in the order of the first.
        verdict: Of before and after: "differ", "alike" or "inconclusive".
        similarity: n x 3: how similar before and after are, with both ends; None about counts.
        distance: n x 3: how far each party moved, with both ends.
        change: The sketches of after − before, by the same labels.
        only_before: Parties that only the first release has.
        only_after: Parties that only the second release has.
        each: Whether the level is for each party by itself.
    """

    labels: tuple[str, ...]
    verdict: tuple[str, ...]
    similarity: Floats | None
    distance: Floats
    change: Sketches
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    each: bool

    def to_arrow(self) -> pa.Table:
        """One line for each party: party, verdict, similarity, lower, upper, distance and its ends, in_clear (data without noise is part of it).

        About counts there is no similarity, and lower and upper are those of the distance.
        """
        columns: dict[str, Any] = {"party": self.labels, "verdict": self.verdict}
        columns |= measures(self.similarity, self.distance)
        columns["in_clear"] = np.array(self.change.in_clear, dtype=np.bool_)
        return self._table(columns)

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of how far each party moved, largest first."""
        label = f"distance of before and after{self._unit}"
        is_known = np.array(self.verdict) != INCONCLUSIVE
        return plots.forest(self.labels, plots.ends_of(self.distance), is_known, label, ax)

    def _title(self) -> str:
        scope = "each party by itself" if self.each else "all parties together"
        changed = self.verdict.count(DIFFER)
        return (
            f"{self._question(scope)}\n{changed} of {plural(len(self.labels), 'party', 'parties')} changed."
        )

    def __str__(self) -> str:
        name = "distance of before and after" if self.similarity is None else "similarity of before and after"
        columns = [
            Column.of_labels("party", self.labels),
            Column("verdict", len(INCONCLUSIVE)),
            Column(name, 30),
        ]
        lines = [self._title(), "", heading(columns)]
        for row in np.argsort(-self.distance[:, 0], kind="stable").tolist():
            words = measure_words(self.similarity, self.distance, row)
            lines.append(line(columns, [self.labels[row], self.verdict[row], words]))
        for when, missing in (("before", self.only_before), ("after", self.only_after)):
            if missing:
                lines.append(f"only {when}: {', '.join(missing)}")
        return sentences([*lines, ""], self.note)


def drift(
    before: Sketches,
    after: Sketches,
    *,
    about: str | None = None,
    level: float = 0.95,
    each: bool = False,
    alike: float | None = None,
) -> Drift:
    """What changed from one release to the next, party by party, matched by label; parties that only one release has are listed.

    A row that is the same release on both sides has moved by exactly 0: noise that both sides share is merged.

    Args:
        before: The first release.
        after: The second release, in the same space.
        about: "populations", "people" or "counts"; None takes the first of them that the releases allow.
        level: With this probability all verdicts are true.
        each: Whether the level is for each party by itself.
        alike: As for `compare`.
    """
    for name, side in (("before", before), ("after", after)):
        if len(set(checked_sketches(name, side, 1).labels)) != len(side):
            raise ParameterError(f"{name} has several rows with the same label", name)
    checked_pair(before, after)
    common = set(before.labels) & set(after.labels)
    both = [label for label in before.labels if label in common]
    only_before, only_after = (
        tuple(label for label in side.labels if label not in common) for side in (before, after)
    )
    if not both:
        raise ParameterError("before and after have no label in common", "before", "after")
    old, new = before[both], after[both]
    about = question(about, old, new)
    limit = alike_limit(alike, about)
    difference = new - old
    change = Sketches(difference.values, both, difference.noises, difference.protocols, difference.totals)
    party_level = Level.of(level, METHODS[0], 1 if each else len(both))

    def ends(estimates: list[Estimate]) -> Floats:
        parts = [np.stack([one.value, *one.rule.interval(party_level)]).reshape(3, -1) for one in estimates]
        return np.concatenate(parts, axis=1).T

    similarity = None
    if about == COUNTS:
        squares = ends([squared_norms(change)])
    else:
        pairs = list(zip(old, new, strict=True))
        squares = ends([squared_distances_about(*pair, about) for pair in pairs])
        similarity = ends([similarities_about(*pair, about) for pair in pairs])
    distance = np.sqrt(np.maximum(squares, 0.0))
    least = None if similarity is None else similarity[:, 1]
    words: list[str] = verdicts(distance[:, 1], distance[:, 2], least, limit).tolist()
    unknown = [label for label, end in zip(both, distance[:, 2], strict=True) if np.isinf(end)]
    notes = [
        f"nothing is known of {', '.join(unknown)}: too few people" if unknown else "",
        _SAME_PEOPLE if about == POPULATIONS else "",
        clear_note(change),
    ]
    return Drift(
        labels=tuple(both),
        verdict=tuple(words),
        similarity=similarity,
        distance=distance,
        change=change,
        only_before=only_before,
        only_after=only_after,
        each=each,
        about=about,
        level=float(level),
        note=answer_note(about, *notes),
    )
