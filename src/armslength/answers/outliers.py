"""Which parties are unlike the others: each against the typical party, the average of all others."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.explain import reasons_against_typical
from armslength.answers.pairs import (
    Answer,
    alike_limit,
    answer_note,
    checked_sketches,
    measure_words,
    measures,
    verdicts,
    without_small,
)
from armslength.checks import number
from armslength.errors import ParameterError
from armslength.estimates.distances import clear_note, squared_norms
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.questions import COUNTS, POPULATIONS, question
from armslength.estimates.shapes import ALIKE
from armslength.estimates.totals import totals
from armslength.estimates.typical import TypicalParties
from armslength.results import Column, heading, line, sentences
from armslength.sketches.sketches import Sketches, sum_rows

_OF_LEAST = (
    0.75  # of the error of all calls: for the party's own lower end; upper ends of the others have the rest
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Outliers(Answer):
    """How similar each party is to the typical party, and whether it is unusually far from it.

    The typical party is the average of all other parties, none weighing more than their median. The verdict says whether a party differs
    from it. An outlier is farther from it than `factor` times what is usual: the median distance of the other parties from theirs. With
    probability at least `level` no party that is not an outlier is called one; the same holds for all verdicts together.

    Attributes:
        labels: The parties.
        people: How many people each has, as released; None about counts.
        similarity: n x 3: how similar the profiles of each party and the typical party are, with both ends; None about counts.
        distance: n x 3: the distance of each party from the typical party, with both ends.
        reasons: For each party that differs, what sets it apart from the typical party, in words; empty for others, and where
            sketches have no item groups.
        alike: The similarity (for counts: the distance) from which on a party and the typical party are alike.
        least: For calls: another lower end of each distance.
        usual: For calls: for each party, an upper end of the median distance of the others.
        factor: How many times the usual distance is not yet unusual.
    """

    labels: tuple[str, ...]
    people: Floats | None
    similarity: Floats | None
    distance: Floats
    reasons: tuple[str, ...]
    alike: float | None
    least: Floats
    usual: Floats
    factor: float

    @property
    def is_outlier(self) -> NDArray[np.bool_]:
        """Whether each party is called an outlier: it is surely farther away than `factor` times the usual distance."""
        called: NDArray[np.bool_] = self.least > self.factor * self.usual
        return called

    @property
    def verdict(self) -> tuple[str, ...]:
        """Of each party and the typical one: "differ", "alike" or "inconclusive"."""
        least = None if self.similarity is None else self.similarity[:, 1]
        words: list[str] = verdicts(self.distance[:, 1], self.distance[:, 2], least, self.alike).tolist()
        return tuple(words)

    @property
    def ranking(self) -> NDArray[np.int64]:
        """The numbers of the parties: outliers first, then by their distance."""
        return np.lexsort((-self.distance[:, 0], ~self.is_outlier))

    def times_usual(self, row: int) -> float:
        """How many times as far as is usual a party is at least."""
        return float(self.least[row] / self.usual[row]) if self.usual[row] > 0 else np.inf

    def number_words(self, row: int) -> str:
        """The similarity with its interval, such as "0.60 (0.57 to 0.63)"; about counts the distance."""
        return measure_words(self.similarity, self.distance, row)

    def to_arrow(self) -> pa.Table:
        """One line for each party: party, people, verdict, outlier, similarity, lower, upper, distance and its ends, least, usual, reasons, in_clear.

        About counts there are no people and no similarity, and lower and upper are those of the distance.
        """
        columns: dict[str, Any] = {"party": self.labels}
        if self.people is not None:
            columns["people"] = self.people
        columns |= {"verdict": self.verdict, "outlier": self.is_outlier}
        columns |= measures(self.similarity, self.distance)
        columns |= {"least": self.least, "usual": self.usual, "reasons": self.reasons}
        return self._table(columns, factor=repr(self.factor))

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of each party's distance from the typical party, largest first, and the limit for outliers."""
        limit = self.factor * float(np.median(self.usual))
        label = f"distance from the typical party{self._unit}"
        words = ("outlier", "not found to be one")
        marks = [(limit, "limit for outliers")]
        ends = plots.ends_of(self.distance)
        return plots.forest(self.labels, ends, self.is_outlier, label, ax, marks=marks, words=words)

    def _title(self) -> str:
        called = int(self.is_outlier.sum())
        count = f"{called} of {len(self.labels)} parties {'is an outlier' if called == 1 else 'are outliers'}"
        return f"{self._question('all parties together')}\n{count}: more than {self.factor:g} times as far from the typical party as is usual."

    def _reasons(self) -> list[str]:
        """A line for each reason; parties with the same reason share it."""
        parties: dict[str, list[str]] = {}
        for row in self.ranking.tolist():
            if self.reasons[row]:
                parties.setdefault(self.reasons[row], []).append(self.labels[row])
        return [f"  {', '.join(names)}: {reason}" for reason, names in parties.items()]

    def __str__(self) -> str:
        columns = [Column.of_labels("party", self.labels), Column("verdict", len("inconclusive"))]
        if self.people is not None:
            columns.insert(1, Column("people", 9, is_number=True))
        number = "distance from" if self.similarity is None else "similarity to"
        columns.append(Column(f"{number} the typical party", 31))
        columns.append(Column("times the usual distance", 24))
        lines = [self._title(), "", heading(columns)]
        for row in self.ranking.tolist():
            cells: list[Any] = [self.labels[row], self.verdict[row]]
            if self.people is not None:
                cells.insert(1, f"{max(self.people[row], 0):,.0f}")
            least = f"at least {self.times_usual(row):.2g}" if self.least[row] > 0 else ""
            outlier = " (outlier)" if self.is_outlier[row] else ""
            lines.append(line(columns, [*cells, self.number_words(row), f"{least}{outlier}"]))
        if any(self.reasons):
            lines += ["", "What sets them apart from the typical party:", *self._reasons()]
        return sentences([*lines, ""], self.note)


def outliers(
    sketches: Sketches,
    *,
    about: str | None = None,
    level: float = 0.95,
    factor: float = 1.5,
    alike: float | None = None,
    keep: bool = False,
) -> Outliers:
    """Which parties are farther from the typical party than `factor` times what is usual, and what sets apart those that differ.

    Args:
        sketches: One row for each party, at least three.
        about: "populations", "people" or "counts"; None takes the first of them that the releases allow.
        level: With this probability no party is falsely called an outlier.
        factor: How many times the usual distance is not yet unusual; at least 1.
        alike: As for `compare`.
        keep: Whether to keep parties that have too few people to say anything.
    """
    times = number("factor", factor, above=1.0 - 2**-53, at_most=1e6)
    about = question(about, checked_sketches("sketches", sketches, 3))
    limit = alike_limit(alike, about)
    if about != COUNTS and sketches.noises.has_shared:
        raise ParameterError("two of the sketches share a release; leave one of them out", "sketches")
    rows, left_out = without_small(sketches, about, 3, keep=keep)
    return outliers_of(rows, about=about, level=level, factor=times, alike=limit, left_out=left_out)


def outliers_of(
    rows: Sketches,
    *,
    about: str,
    level: float,
    factor: float = 1.5,
    alike: float | None = ALIKE,
    left_out: str = "",
) -> Outliers:
    """The same of rows that are all large enough, at least three; unless it is about counts they must share no release."""
    count = len(rows)
    party_level = Level.of(level, METHODS[0], count)
    least_level = party_level.share(2 * _OF_LEAST)
    usual_level = Level.of(level, METHODS[0], (count + 1) // 2 + 1).share(2 * (1 - _OF_LEAST))
    people = similarity = None
    if about == COUNTS:
        typical = rows * (count / (count - 1)) - sum_rows(rows, "all") / (count - 1)
        estimate = squared_norms(typical)
        interval = estimate.rule.interval
        squares = estimate.value, *interval(party_level), interval(least_level)[0], interval(usual_level)[1]
    else:
        parties = TypicalParties.of(rows, beyond_chance=about == POPULATIONS)
        least = parties.squared_distances(least_level.tail)[1]
        squares = *parties.squared_distances(party_level.tail), least, _highest(parties, rows, usual_level)
        similarity = np.stack(parties.similarities(party_level), axis=1)
        people = totals(rows).value
    *distance, least, highest = (np.sqrt(np.maximum(ends, 0.0)) for ends in squares)
    found = Outliers(
        labels=rows.labels,
        people=people,
        similarity=similarity,
        distance=np.stack(distance, axis=1),
        reasons=("",) * count,
        alike=alike,
        least=least,
        usual=np.array([np.median(np.delete(highest, row)) for row in range(count)]),
        factor=factor,
        about=about,
        level=float(level),
        note=answer_note(about, clear_note(rows), left_out),
    )
    differ = [row for row in range(count) if found.verdict[row] == "differ"]
    words = reasons_against_typical(rows, differ, about=about, level=level)
    reasons = dict(zip(differ, words, strict=True))
    return replace(found, reasons=tuple(reasons.get(row, "") for row in range(count)))


def _highest(parties: TypicalParties, rows: Sketches, level: Level) -> Floats:
    """The upper end of each squared distance from the typical party. Within one release of votes nobody is in two rows."""
    law = parties.shapes.law(parties.rows, parties.typical, is_paired=True)
    is_one_release = len(set(rows.noises.origins["release"].tolist())) == 1
    upper = law.interval(level.tail, share_nobody=is_one_release)[1]
    return np.where(law.is_coarse(upper, level.tail), np.inf, upper)[:, 0]
