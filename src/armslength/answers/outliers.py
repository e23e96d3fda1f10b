"""Which parties are unlike the others: each against the typical party, the average of all others."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength import plots
from armslength.answers.pairs import Answer, answer_note, checked_sketches, pair_estimator, with_shapes
from armslength.checks import number
from armslength.errors import ParameterError
from armslength.estimates.distances import clear_note, squared_norms
from armslength.estimates.intervals import METHODS, Level
from armslength.estimates.pair_noise import Floats
from armslength.estimates.shapes import ALIKE
from armslength.estimates.totals import totals
from armslength.estimates.typical import TypicalParties
from armslength.results import Column, heading, line, sentences, similarity_text, three_digits
from armslength.sketches.sketches import Sketches, sum_rows

_OF_LEAST = (
    0.75  # of the error of all calls: for the party's own lower end; upper ends of the others have the rest
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Outliers(Answer):
    """How far each party is from the typical party, and whether that is unusual.

    The typical party is the average of all other parties, none weighing more than their median. An outlier is farther from it than
    `factor` times what is usual: the median distance of the other parties from theirs. Three statements hold with probability at least
    `level` each: no party that is not an outlier is called one, all intervals of distances hold together, and so do all intervals of
    similarities.

    Attributes:
        labels: The parties.
        people: How many people each has, as released; None by size.
        distance: The estimated distance of each party from the typical party, in data units.
        lower: The lower ends of the distances.
        upper: The upper ends.
        similarity: n x 3: how similar the profiles of each party and the typical party are, with both ends; None by size.
        least: For calls: another lower end of each distance.
        usual: For calls: for each party, an upper end of the median distance of the others.
        factor: How many times the usual distance is not yet unusual.
    """

    labels: tuple[str, ...]
    people: Floats | None
    distance: Floats
    lower: Floats
    upper: Floats
    similarity: Floats | None
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
        """Of each party and the typical one: "alike" (similarity at least 0.95), "differ" or "inconclusive"."""
        words = np.where(self.lower > 0, "differ", "inconclusive")
        if self.similarity is not None:
            words = np.where(self.similarity[:, 1] >= ALIKE, "alike", words)
        return tuple(words.tolist())

    @property
    def ranking(self) -> NDArray[np.int64]:
        """The numbers of the parties: outliers first, then by their distance."""
        return np.lexsort((-self.distance, ~self.is_outlier))

    def times_usual(self, row: int) -> float:
        """How many times as far as is usual a party is at least."""
        return float(self.least[row] / self.usual[row]) if self.usual[row] > 0 else np.inf

    def similarity_words(self, row: int) -> str:
        """The similarity with its interval, such as "0.60 (0.57 to 0.63)"."""
        return "" if self.similarity is None else similarity_text(*self.similarity[row].tolist())

    def sentence(self, row: int) -> str:
        """What can be said of one party."""
        name, similar = self.labels[row], self.similarity_words(row)
        distance = f"distance {three_digits(self.lower[row])} to {three_digits(self.upper[row])}"
        numbers = f"similarity {similar}" if similar else distance
        if self.is_outlier[row]:
            return (
                f"{name} is unlike the others: at least {self.times_usual(row):.2g} times as far from the typical party as is usual; "
                f"{numbers}"
            )
        return {
            "alike": f"{name} and the typical party are alike: {numbers}",
            "differ": f"{name} differs from the typical party; not found to be unusual (at least {self.times_usual(row):.2g} times the usual "
            f"distance): {numbers}",
            "inconclusive": f"{name}: inconclusive; {numbers}",
        }[self.verdict[row]]

    def to_arrow(self) -> pa.Table:
        """One line for each party: party, people, verdict, outlier, similarity with its ends (by shape), distance with its ends, least, usual, in_clear."""
        columns: dict[str, Any] = {"party": self.labels}
        if self.people is not None:
            columns["people"] = self.people
        columns |= {"verdict": self.verdict, "outlier": self.is_outlier}
        if self.similarity is not None:
            names = ("similarity", "similarity_lower", "similarity_upper")
            columns |= dict(zip(names, self.similarity.T, strict=True))
        columns |= {name: getattr(self, name) for name in ("distance", "lower", "upper", "least", "usual")}
        return self._table(columns, factor=repr(self.factor))

    def plot(self, ax: Any = None) -> Any:
        """Matplotlib axes with the interval of each party's distance from the typical party, largest first, and the limit for outliers."""
        limit = self.factor * float(np.median(self.usual))
        ends = (self.distance, self.lower, self.upper)
        label = f"distance from the typical party{self._unit}"
        words = ("outlier", "not found to be one")
        marks = [(limit, "limit for outliers")]
        return plots.forest(self.labels, ends, self.is_outlier, label, ax, marks=marks, words=words)

    def _title(self) -> str:
        called = int(self.is_outlier.sum())
        count = f"{called} of {len(self.labels)} parties {'is' if called == 1 else 'are'}"
        return f"{count} unlike the others ({100 * self.level:.6g}% confidence, all parties together)"

    def __str__(self) -> str:
        columns = [Column.of_labels("party", self.labels), Column("verdict", len("inconclusive"))]
        if self.people is not None:
            columns.insert(1, Column("people", 9, is_number=True))
        if self.similarity is not None:
            columns.append(Column("similarity to the typical party", 31))
        columns.append(Column("times the usual distance", 24, is_number=True))
        lines = [self._title(), "", heading(columns)]
        for row in self.ranking.tolist():
            word = "outlier" if self.is_outlier[row] else self.verdict[row]
            cells: list[Any] = [self.labels[row], word]
            if self.people is not None:
                cells.insert(1, f"{max(self.people[row], 0):,.0f}")
            if self.similarity is not None:
                cells.append(self.similarity_words(row))
            cells.append(f"at least {self.times_usual(row):.2g}" if self.lower[row] > 0 else "")
            lines.append(line(columns, cells))
        return sentences([*lines, ""], self.note)


def outliers(
    sketches: Sketches,
    level: float = 0.95,
    *,
    factor: float = 1.5,
    by: str = "size",
    beyond_chance: bool = False,
) -> Outliers:
    """Which parties are farther from the typical party than `factor` times what is usual.

    Parties that are too small to say anything about are left out; the note names them.

    Args:
        sketches: One row for each party, at least three.
        level: With this probability no party is falsely called an outlier.
        factor: How many times the usual distance is not yet unusual; at least 1.
        by: "size" for rows as they are, "shape" for rows divided by their totals.
        beyond_chance: Whether to ask about the populations behind the rows, as for `shape_distances`; by shape.
    """
    times = number("factor", factor, above=1.0 - 2**-53, at_most=1e6)
    pair_estimator(by, beyond_chance=beyond_chance)  # refuses what does not go together
    checked_sketches("sketches", sketches, 3)
    if by == "shape" and sketches.noises.has_shared:
        raise ParameterError("two of the sketches share a release; leave one of them out", "sketches")
    rows, left_out = with_shapes(sketches, by, 3, beyond_chance=beyond_chance)
    return outliers_of(rows, level=level, factor=times, by=by, beyond_chance=beyond_chance, left_out=left_out)


def outliers_of(
    rows: Sketches,
    *,
    level: float,
    factor: float = 1.5,
    by: str,
    beyond_chance: bool,
    left_out: str = "",
) -> Outliers:
    """The same of rows that are all large enough, at least three; by shape they must share no release."""
    count = len(rows)
    party_level = Level.of(level, METHODS[0], count)
    least_level = party_level.share(2 * _OF_LEAST)
    usual_level = Level.of(level, METHODS[0], (count + 1) // 2 + 1).share(2 * (1 - _OF_LEAST))
    people = similarity = None
    if by == "size":
        typical = rows * (count / (count - 1)) - sum_rows(rows, "all") / (count - 1)
        estimate = squared_norms(typical)
        interval = estimate.rule.interval
        squares = estimate.value, *interval(party_level), interval(least_level)[0], interval(usual_level)[1]
    else:
        parties = TypicalParties.of(rows, beyond_chance=beyond_chance)
        least = parties.squared_distances(least_level.tail)[1]
        squares = *parties.squared_distances(party_level.tail), least, _highest(parties, rows, usual_level)
        similarity = np.stack(parties.similarities(party_level), axis=1)
        people = totals(rows).value
    distance, lower, upper, least, highest = (np.sqrt(np.maximum(ends, 0.0)) for ends in squares)
    return Outliers(
        labels=rows.labels,
        people=people,
        distance=distance,
        lower=lower,
        upper=upper,
        similarity=similarity,
        least=least,
        usual=np.array([np.median(np.delete(highest, row)) for row in range(count)]),
        factor=factor,
        level=level,
        by=by,
        beyond_chance=beyond_chance,
        note=answer_note(by, clear_note(rows), left_out, beyond_chance=beyond_chance),
    )


def _highest(parties: TypicalParties, rows: Sketches, level: Level) -> Floats:
    """The upper end of each squared distance from the typical party. Within one release of votes nobody is in two rows."""
    law = parties.shapes.law(parties.rows, parties.typical, is_paired=True)
    is_one_release = len(set(rows.noises.origins["release"].tolist())) == 1
    upper = law.interval(level.tail, share_nobody=is_one_release)[1]
    return np.where(law.is_coarse(upper, level.tail), np.inf, upper)[:, 0]
