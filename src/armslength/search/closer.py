"""Is one party closer to this one or to that one?"""

from dataclasses import dataclass

from armslength.estimates.contrasts import contrast
from armslength.estimates.squared_distances import checked_pair
from armslength.protocol.sketches import Sketches
from armslength.search.alike import one_row, one_sided


@dataclass(frozen=True)
class Closer:
    """Which of two parties a third one is closer to.

    Attributes:
        verdict: "b", "c" or "undecided".
        labels: The parties a, b and c.
        difference: The estimate of ‖a−b‖² − ‖a−c‖², in squared data units: negative if b is closer.
        interval: (lower, upper) of the difference. With "guaranteed" it holds at `level`; with "spread" its ends are made for the
            comparison with 0, and miss the difference itself more often.
        level: A wrong verdict comes with probability at most 1 − level, whatever the truth is.
        method: "guaranteed" is proven for all data; "spread" is approximate.
        note: What must be known to read it; empty if nothing.
    """

    verdict: str
    labels: tuple[str, str, str]
    difference: float
    interval: tuple[float, float]
    level: float
    method: str
    note: str

    def __str__(self) -> str:
        a, b, c = self.labels
        said = {
            "b": f"{a} is closer to {b} than to {c}",
            "c": f"{a} is closer to {c} than to {b}",
            "undecided": f"whether {a} is closer to {b} or to {c} cannot be told",
        }[self.verdict]
        about = "" if self.method == "guaranteed" else " (approximate)"
        note = f" ({self.note})" if self.note else ""
        return f"{said}; saying so is wrong with probability at most {1 - self.level:.4g}{about}{note}"


def closer(a: Sketches, b: Sketches, c: Sketches, level: float = 0.95, *, method: str = "spread") -> Closer:
    """Whether a is closer to b than to c: "b", "c" or "undecided".

    The difference of the two squared distances is estimated as one quantity, which shares the noise of a; two
    intervals, subtracted, would be wider. A wrong verdict has probability at most 1 − level.

    Args:
        a: One row.
        b: One row.
        c: One row.
        level: 1 − the probability of a wrong verdict; above one half.
        method: "spread", approximate, or "guaranteed", proven for all data.
    """
    for name, row in (("a", a), ("b", b), ("c", c)):
        one_row(name, row)
    checked_pair(a, b)
    checked_pair(a, c)
    sure = one_sided(level)
    found = contrast(a, b, c, sure, method)
    verdict = "b" if found.upper < 0 else "c" if found.lower > 0 else "undecided"
    labels = (a.labels[0], b.labels[0], c.labels[0])
    return Closer(verdict, labels, found.value, (found.lower, found.upper), sure, method, found.note)
