"""What changed between two releases of the same parties."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import Answer, answer_note, checked_sketches, pair_estimator
from armslength.errors import ParameterError, plural
from armslength.estimates.distances import as_distances, checked_pair, clear_note, squared_norms
from armslength.estimates.intervals import Level
from armslength.estimates.shapes import shape_distances, some_labels
from armslength.results import Column, heading, line, sentences
from armslength.sketches.sketches import Sketches

_SAME_PEOPLE = "people who are in both releases are assumed not to tend to change places"


@dataclass(frozen=True, eq=False, repr=False)
class Drift(Answer):
    """How far each party moved between two releases, in data units.

    With probability at least `level` all intervals hold together, so that all parties with `resolved` truly changed.

    Attributes:
        labels: The parties that both releases have, in the order of the first.
        value: How far each moved: the estimated distance of before and after.
        lower: The lower ends.
        upper: The upper ends.
        resolved: Whether the change is told from none: the interval leaves out 0.
        change: The sketches of after − before, by the same labels.
        only_before: Parties that only the first release has.
        only_after: Parties that only the second release has.
    """

    labels: tuple[str, ...]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    resolved: NDArray[np.bool_]
    change: Sketches
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    def to_arrow(self) -> pa.Table:
        """One line for each party: label, value, lower, upper, resolved, in_clear (data without noise is part of it)."""
        names = ("value", "lower", "upper", "resolved")
        columns = {"label": self.labels, **{name: getattr(self, name) for name in names}}
        columns["in_clear"] = np.array(self.change.in_clear, dtype=np.bool_)
        return self._table(columns, quantity="drift")

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of how far each party moved, largest first."""
        ends = (self.value, self.lower, self.upper)
        return plots.forest(self.labels, ends, self.resolved, f"moved by{self._unit}", ax)

    def _title(self) -> str:
        parties = plural(len(self.labels), "party", "parties")
        return f"{int(self.resolved.sum())} of {parties} surely changed; intervals hold together at {100 * self.level:.6g}%"

    def __str__(self) -> str:
        columns = [
            Column.of_labels("party", self.labels),
            *map(Column.of_numbers, ("moved by", "from", "to")),
            Column("", len("not resolved")),
        ]
        lines = [heading(columns)]
        for row in np.argsort(-self.value, kind="stable"):
            numbers = (float(column[row]) for column in (self.value, self.lower, self.upper))
            state = "" if self.resolved[row] else "not resolved"
            lines.append(line(columns, [self.labels[row], *numbers, state]))
        lines.append(self._title())
        for when, missing in (("before", self.only_before), ("after", self.only_after)):
            if missing:
                lines.append(f"only {when}: {', '.join(missing)}")
        return sentences(lines, self.note)


def drift(
    before: Sketches,
    after: Sketches,
    level: float = 0.95,
    *,
    by: str = "size",
    beyond_chance: bool = False,
    method: str = "asymptotic",
    partial: bool = False,
) -> Drift:
    """How far each party moved from one release to the next, matched by label, all intervals together at the level.

    A row that is the same release on both sides has moved by exactly 0: noise that both sides share is merged.

    Args:
        before: The first release.
        after: The second release, in the same space.
        level: With this probability all intervals hold together.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
        partial: Whether parties may be missing on a side; they are then listed in the result.
    """
    for name, side in (("before", before), ("after", after)):
        if len(set(checked_sketches(name, side, 1).labels)) != len(side):
            raise ParameterError(f"{name} has several rows with the same label", name)
    checked_pair(before, after)
    pair_estimator(by, beyond_chance=beyond_chance)  # refuses what does not go together
    common = set(before.labels) & set(after.labels)
    both = [label for label in before.labels if label in common]
    only_before, only_after = (
        tuple(label for label in side.labels if label not in common) for side in (before, after)
    )
    if not both:
        raise ParameterError("before and after have no label in common", "before", "after")
    if (only_before or only_after) and not partial:
        raise ParameterError(
            f"{plural(len(only_before), 'label is', 'labels are')} only in before and {len(only_after)} only in after; "
            "partial=True compares those in both",
            "before",
            "after",
            "partial",
        )
    old, new = before[both], after[both]
    difference = new - old
    change = Sketches(difference.values, both, difference.noises, difference.protocols, difference.totals)
    party_level = Level.of(level, method, len(both))
    if by == "size":
        estimates = [as_distances(squared_norms(change))]
    else:
        pairs = zip(old, new, strict=True)
        estimates = [shape_distances(*pair, beyond_chance=beyond_chance) for pair in pairs]
    columns = [(one.value, *one.rule.interval(party_level)) for one in estimates]
    value, lower, upper = (
        np.concatenate([part.ravel() for part in parts]) for parts in zip(*columns, strict=True)
    )
    answer = tuple(both), value, lower, upper, lower > 0, change, only_before, only_after
    unknown = some_labels(both, np.isinf(upper))
    unknown = f"nothing is known of {unknown}: a total may be 0, or is too coarse" if unknown else ""
    people = _SAME_PEOPLE if beyond_chance else ""
    note = answer_note(by, unknown, people, clear_note(change), beyond_chance=beyond_chance)
    return Drift(*answer, level=level, by=by, beyond_chance=beyond_chance, note=note)
