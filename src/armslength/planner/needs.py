"""What would be enough if too little is seen: a larger ε, more people, a larger distance, or a larger sketch."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from armslength.planner.situation import LARGEST_COUNT
from armslength.privacy.exact_numbers import WEAK_EPSILON

LARGEST_EPSILON = 1000.0


@dataclass(frozen=True)
class Needs:
    """What would be enough, each with everything else unchanged; None if nothing is, or if it does not apply.

    Attributes:
        similarity: Of profiles: what would then be seen.
        epsilon: The smallest ε, to two digits.
        people: The smallest number of people in each party, to two digits.
        distance: Of counts: the smallest distance, to three digits.
        sketch_dim: Of counts: the size limit, a power of two times the present one.
    """

    similarity: float | None = None
    epsilon: float | None = None
    people: int | None = None
    distance: float | None = None
    sketch_dim: int | None = None

    @property
    def offers(self) -> list[str]:
        """What would be enough, in words."""
        weak = " (a weak promise)" if (self.epsilon or 0) > WEAK_EPSILON else ""
        texts = (
            f"ε = {self.epsilon:g}{weak}" if self.epsilon is not None else "",
            f"{self.people:,} people in each party" if self.people is not None else "",
            f"a distance of {number_text(self.distance)}" if self.distance is not None else "",
            f"a sketch of up to {self.sketch_dim:,} numbers" if self.sketch_dim is not None else "",
        )
        return [text for text in texts if text]


def number_text(number: float) -> str:
    """The number to four digits, without an exponent if it is easy to read."""
    return f"{number:,.0f}" if 1000 <= number < 1e9 else f"{number:,.4g}"


def enough_epsilon(epsilon: Fraction, holds: Callable[..., bool]) -> float | None:
    """The smallest larger ε for which holds(epsilon=ε), to two digits; None if there is none up to 1000."""
    value = smallest(float(epsilon), LARGEST_EPSILON, lambda value: holds(epsilon=rounded_up(value, 2)))
    return None if value is None else float(rounded_up(value, 2))


def enough_people(people: int, holds: Callable[..., bool]) -> int | None:
    """The same for holds(people=number), up to 2^40."""
    value = smallest(people, LARGEST_COUNT, lambda value: holds(people=math.ceil(rounded_up(value, 2))))
    return None if value is None else math.ceil(rounded_up(value, 2))


def smallest(start: float, largest: float, holds: Callable[[float], bool]) -> float | None:
    """The smallest value above start for which a monotone condition holds, within half a percent; None if none up to the largest."""
    if start >= largest or not holds(largest):
        return None
    high = start
    while not holds(high):
        high = min(largest, 2 * high)
    low = max(start, high / 2)
    while high > 1.005 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def rounded_up(value: float, digits: int) -> Fraction:
    """The next larger decimal of so many digits, exactly."""
    exponent = math.floor(math.log10(value)) - digits + 1
    step = Fraction(10) ** exponent
    return math.ceil(Fraction(value) / step) * step
