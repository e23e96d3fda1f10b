"""What changed between two releases of the same parties."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.answers.pairs import BY, checked_sketches, ends, noted
from armslength.checks import one_of
from armslength.errors import ParameterError, counted
from armslength.estimates.distances import as_distances, checked_pair, squared_norms
from armslength.estimates.shapes import shape_distances
from armslength.sketches.sketches import Sketches


@dataclass(frozen=True, eq=False)
class Drift:
    """How far each party moved between two releases, in data units.

    With probability at least `level` all intervals hold together, so that all parties with `resolved` truly changed.

    Attributes:
        labels: The parties that both releases have, in the order of the first.
        value: How far each moved: the estimated distance of before and after.
        lower: The lower ends.
        upper: The upper ends.
        resolved: Whether the change is told from none: the interval leaves out 0.
        change: The sketches of after − before, by the same labels. They can be compared, added and subtracted: the
            difference of two changes is the drift of the drift.
        only_before: Parties that only the first release has.
        only_after: Parties that only the second release has.
        level: The confidence of all intervals together.
        by: "size" or "shape".
        note: What must be known to read it; empty if nothing.
    """

    labels: tuple[str, ...]
    value: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    resolved: NDArray[np.bool_]
    change: Sketches
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    level: float
    by: str
    note: str

    def to_arrow(self) -> pa.Table:
        """One line for each party: label, value, lower, upper, resolved, in_clear (data without noise is part of it)."""
        columns = {
            "label": pa.array(self.labels, pa.string()),
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "resolved": self.resolved,
            "in_clear": pa.array(self.change.in_clear, pa.bool_()),
        }
        meta = {"quantity": "drift", "by": self.by, "level": repr(self.level), "note": self.note}
        return pa.table(columns).replace_schema_metadata(meta)

    def __str__(self) -> str:
        changed = int(self.resolved.sum())
        lines = [
            f"{changed} of {counted(len(self.labels), 'party', 'parties')} changed; no party is falsely said to, at {self.level:.6g}"
        ]
        for row in np.argsort(-self.value, kind="stable"):
            ends = f"{self.lower[row]:.6g} to {self.upper[row]:.6g}"
            said = f"moved by {self.value[row]:.6g} ({ends})" if self.resolved[row] else "not resolved"
            far = "" if self.resolved[row] else f": moved by at most {self.upper[row]:.6g}"
            lines.append(f"{self.labels[row]}: {said}{far}")
        for when, missing in (("before", self.only_before), ("after", self.only_after)):
            if missing:
                lines.append(f"only {when}: {', '.join(missing)}")
        return "\n".join([*lines, *([self.note] if self.note else [])])


def drift(
    before: Sketches,
    after: Sketches,
    level: float = 0.95,
    *,
    by: str = "size",
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
        method: "asymptotic" or "guaranteed", as for `Estimate.interval`.
        partial: Whether parties may be missing on a side; they are then listed in the result.
    """
    checked_sketches("before", before, 1)
    checked_sketches("after", after, 1)
    checked_pair(before, after)
    for name, side in (("before", before), ("after", after)):
        if len(set(side.labels)) != len(side):
            raise ParameterError(f"labels of {name} must differ from each other, got duplicates")
    places = {label: row for row, label in enumerate(after.labels)}
    known = set(before.labels)
    both = [label for label in before.labels if label in places]
    only_before = tuple(label for label in before.labels if label not in places)
    only_after = tuple(label for label in after.labels if label not in known)
    if not both or ((only_before or only_after) and not partial):
        raise ParameterError(
            f"labels must be the same before and after, got {len(only_before)} only before and {len(only_after)} only "
            "after; partial=True compares those in both"
            if both
            else "labels must be the same before and after, got none in both"
        )
    first = [row for row, label in enumerate(before.labels) if label in places]
    moved = after.rows([places[label] for label in both]) - before.rows(first)
    change = Sketches(moved.values, both, moved.noises, moved.protocols, moved.totals)
    if one_of("by", by, BY) == "size":
        estimate = as_distances(squared_norms(change))
        value, (lower, upper) = estimate.value, ends(estimate, level, method, len(both))
    else:
        pairs = [(before.rows([row]), after.rows([places[before.labels[row]]])) for row in first]
        each = [shape_distances(old, new) for old, new in pairs]
        found = [(one.value, *ends(one, level, method, len(both))) for one in each]
        value, lower, upper = (np.array([part[place][0, 0] for part in found]) for place in range(3))
    return Drift(
        tuple(both),
        value,
        lower,
        upper,
        lower > 0,
        change,
        only_before,
        only_after,
        level,
        by,
        noted(by, change),
    )
