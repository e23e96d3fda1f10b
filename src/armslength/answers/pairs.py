"""What all answers share: the question, verdicts, tables and notes, and pairs of rows in tiles, so that no answer needs all at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from armslength.checks import number
from armslength.errors import NotResolvableError, ParameterError, plural
from armslength.estimates.distances import is_clear
from armslength.estimates.estimate import Estimate
from armslength.estimates.pair_noise import Floats
from armslength.estimates.questions import COUNTS, PEOPLE, POPULATIONS, squared_distances_about
from armslength.estimates.shapes import ALIKE
from armslength.estimates.totals import has_sure_total, totals
from armslength.estimates.typical import large_enough
from armslength.results import Result, distance_text, percent, similarity_text
from armslength.sketches.sketches import Sketches

PairEstimator = Callable[[Sketches, Sketches | None], Estimate]

DIFFER, SAME, INCONCLUSIVE = VERDICTS = ("differ", "alike", "inconclusive")
MORE, FEWER = "more", "fewer"
QUESTION_TEXTS = {
    POPULATIONS: "Do the populations differ, beyond chance?",
    PEOPLE: "Do the people who were counted differ?",
    COUNTS: "How far apart are the counts, size and profile together?",
}
ASSUMPTIONS = {
    POPULATIONS: "As if each party's people were a random sample of people like them; families, clinics and repeat visits make chance larger",
    PEOPLE: "About the people who were counted, not about the populations behind them",
    COUNTS: "",
}
ROWS, COLUMNS = 256, 2048  # half a million pairs to a tile: 4 MiB for each number of a pair
SMALL = 1024  # rows within which all pairs are one tile
_MOST_NAMED = 5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(Result):
    """What answers have in common.

    Attributes:
        about: The question: "populations", "people" or "counts".
        level: The confidence, for all of the answer together unless the answer says otherwise.
        note: What must be known to read it; empty if nothing.
    """

    about: str
    level: float
    note: str

    def _table(self, columns: dict[str, Any], **metadata: str) -> pa.Table:
        """The columns as a table; `in_clear` is the same in all lines, since ranks and groups depend on all rows."""
        arrays = {
            name: pa.array(column, pa.string()) if isinstance(column, tuple | list) else pa.array(column)
            for name, column in columns.items()
        }
        if "in_clear" not in arrays:
            length = len(next(iter(arrays.values())))
            arrays["in_clear"] = pa.array(np.full(length, is_clear(self.note)))
        metadata |= {"about": self.about, "level": repr(self.level), "note": self.note}
        return pa.table(arrays).replace_schema_metadata(metadata)

    def _question(self, scope: str) -> str:
        """The first line of an answer: the question, and what the level is for, such as "all 36 pairs together"."""
        return f"{QUESTION_TEXTS[self.about]}   {percent(self.level)} confidence, {scope}."

    @property
    def _unit(self) -> str:
        """The unit of a distance, for the label of an axis."""
        return ", data units" if self.about == COUNTS else " of profiles"


@dataclass(frozen=True)
class Tile:
    """The pairs of consecutive rows of the left side with consecutive rows of the right side; None: the pairs within the left side."""

    first_row: int
    first_column: int
    left: Sketches
    right: Sketches | None

    def estimate(self, estimator: PairEstimator) -> Estimate:
        """What an estimator makes of these pairs."""
        return estimator(self.left, self.right)


def squared_distance_estimator(about: str) -> PairEstimator:
    """Squared distances for this question."""
    return partial(squared_distances_about, about=about)


def alike_limit(alike: Any, about: str) -> float | None:
    """From which similarity on two parties are alike; for counts up to which distance, and None: no two are called alike."""
    if alike is None:
        return None if about == COUNTS else ALIKE
    if about == COUNTS:
        return number("alike", alike, above=-5e-324, at_most=1e300)
    return number("alike", alike, above=0.0, at_most=1.0)


def verdict_numbers(
    lower: Floats, upper: Floats, similarity_lower: Floats | None, limit: float | None
) -> NDArray[np.int8]:
    """What is said of pairs with these ends of the distance and this lower end of the similarity: places in `VERDICTS`.

    For a given truth only one of "differ" and "alike" can be wrong, so a wrong verdict is as rare as an interval that misses.
    """
    numbers: NDArray[np.int8] = np.where(lower > 0, np.int8(0), np.int8(2))
    if limit is not None:
        numbers[upper <= limit if similarity_lower is None else similarity_lower >= limit] = 1
    return numbers


def verdicts(
    lower: Floats, upper: Floats, similarity_lower: Floats | None, limit: float | None
) -> NDArray[np.str_]:
    """The same in words."""
    words: NDArray[np.str_] = np.array(VERDICTS)[verdict_numbers(lower, upper, similarity_lower, limit)]
    return words


def measures(similarity: Floats | None, distance: Floats) -> dict[str, Floats]:
    """Columns of (value, lower, upper): similarity, lower, upper and the distance with its ends; about counts distance, lower, upper."""
    of_distance = distance.reshape(-1, 3).T
    if similarity is None:
        return dict(zip(("distance", "lower", "upper"), of_distance, strict=True))
    columns = dict(zip(("similarity", "lower", "upper"), similarity.reshape(-1, 3).T, strict=True))
    return columns | dict(zip(("distance", "distance_lower", "distance_upper"), of_distance, strict=True))


def measure_words(similarity: Floats | None, distance: Floats, place: Any) -> str:
    """The number that people read with its interval: the similarity, or about counts the distance."""
    if similarity is None:
        return distance_text(*distance[place].tolist())
    return similarity_text(*similarity[place].tolist())


def each_pair_once(a: Sketches, b: Sketches | None) -> Iterator[Tile]:
    """Tiles with every row of a against every row of b, or with every pair within a once."""
    if b is not None:
        for start in range(0, len(b), COLUMNS):
            columns = b.span(start, start + COLUMNS)
            for rows in row_blocks(len(a)):
                yield Tile(rows.start, start, a.span(rows.start, rows.stop), columns)
    elif len(a) <= SMALL:
        yield Tile(0, 0, a, None)
    else:
        for rows in row_blocks(len(a)):
            left = a.span(rows.start, rows.stop)
            # A tile of its own for the diagonal: there every row meets its own noise.
            yield Tile(rows.start, rows.start, left, None)
            for start in range(rows.stop, len(a), COLUMNS):
                yield Tile(rows.start, start, left, a.span(start, min(start + COLUMNS, len(a))))


def row_blocks(count: int) -> Iterator[range]:
    """Consecutive blocks of rows."""
    return (range(start, min(start + ROWS, count)) for start in range(0, count, ROWS))


def answer_note(about: str, *others: str) -> str:
    """The note of an answer: what its question assumes, and others; empty if there is nothing to note."""
    return "; ".join(filter(None, (ASSUMPTIONS[about], *others)))


def without_small(
    sketches: Sketches, about: str, at_least: int, *, keep: bool = False
) -> tuple[Sketches, str]:
    """The rows that have enough people to say something about their profiles, if that is the question, and a note that names the others.

    With `keep`, all rows whose number of people is surely above 0.
    """
    if about == COUNTS:
        return sketches, ""
    is_large = (
        has_sure_total(sketches) if keep else large_enough(sketches, beyond_chance=about == POPULATIONS)
    )
    if is_large.all():
        return sketches, ""
    small = sketches[~is_large]
    people = totals(small)
    reach = people.value - people.interval()[0]
    names = [
        f"{label} (about {max(value, 0.0):,.0f} ± {end:,.0f})"
        for label, value, end in zip(small.labels, people.value, reach, strict=True)
    ]
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    named = ", ".join(names[:_MOST_NAMED] + more)
    if is_large.sum() < at_least:
        raise NotResolvableError(
            f"too few people to say anything about {named}; {plural(int(is_large.sum()), 'party is', 'parties are')} left, and this takes {at_least}; "
            "keep=True keeps all",
            "keep",
        )
    return sketches[is_large], f"left out, because of too few people: {named}"


def directions(lower: Floats, upper: Floats) -> tuple[str, ...]:
    """Of single differences with these ends: "more", "fewer" or "inconclusive"."""
    words = np.where(lower > 0, MORE, np.where(upper < 0, FEWER, INCONCLUSIVE))
    return tuple(words.tolist())


def by_evidence(value: Floats, lower: Floats, upper: Floats) -> NDArray[np.int64]:
    """The order of differences by evidence: those that were found first, then by the size of a difference over that of its error."""
    size, half = np.abs(value), (upper - lower) / 2
    evidence = np.divide(size, half, out=np.where(size > 0, np.inf, 0.0), where=half > 0)
    return np.lexsort((-size, -evidence, (lower <= 0) & (upper >= 0)))


def checked_sketches(name: str, sketches: object, at_least: int) -> Sketches:
    """The sketches, if they are sketches of so many rows."""
    if not isinstance(sketches, Sketches):
        raise ParameterError(f"{name} must be al.Sketches, got {type(sketches).__name__}", name)
    if len(sketches) < at_least:
        raise ParameterError(
            f"{name} must have at least {plural(at_least, 'row')}, got {len(sketches)}", name
        )
    return sketches
