"""Text into HTML: escaped by default, labels isolated from the direction of the text around them."""

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_FIELD = re.compile(r"\{\{(\w+)\}\}")


def escaped(text: str) -> str:
    """Text as it stands between tags and in quoted attributes."""
    return html.escape(text, quote=True)


def name(label: str) -> str:
    """A party's label: its own direction of writing, whatever stands around it."""
    return f"<bdi>{escaped(label)}</bdi>"


def filled(template: str, fields: Mapping[str, str]) -> str:
    """The template with its fields, which must be markup already. What a field holds is not looked at again."""
    return _FIELD.sub(lambda found: fields[found[1]], template)


def section(identifier: str, heading: str, *parts: str, classes: str = "") -> str:
    """A section with its heading, which names it for assistive technology."""
    kind = f' class="{classes}"' if classes else ""
    body = "\n".join(part for part in parts if part)
    return (
        f'<section id="{identifier}" aria-labelledby="{identifier}-heading"{kind}>\n'
        f'<h2 id="{identifier}-heading">{heading}</h2>\n{body}\n</section>'
    )


# Numbers as the page writes them: one style for all distances, so that columns can be compared by eye.


_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e7, 1e-4


@dataclass(frozen=True)
class NumberStyle:
    """How distances are written.

    Attributes:
        decimals: Digits after the point; None writes powers of ten.
    """

    decimals: int | None

    @classmethod
    def of(cls, distances: NDArray[np.float64]) -> "NumberStyle":
        """The style that gives the median of these distances three digits."""
        positive = distances[np.isfinite(distances) & (distances > 0)]
        typical = float(np.median(positive)) if len(positive) else 1.0
        if not _SMALLEST_PLAIN <= typical < _LARGEST_PLAIN:
            return cls(None)
        return cls(max(0, 2 - math.floor(math.log10(typical))))

    def text(self, value: float) -> str:
        """One number; infinity has its sign. The script of the page writes numbers in the same way."""
        if math.isinf(value):
            return "∞"
        if self.decimals is None:
            return "0" if value == 0 else f"{value:.2e}"
        return f"{value:,.{self.decimals}f}"

    def interval(self, lower: float, upper: float) -> str:
        """Both ends, with "to" between them."""
        return f"{self.text(lower)} to {self.text(upper)}"


def percent(share: float) -> str:
    """A share as whole percents, which says 100% and 0% only of all and of nothing."""
    if 0 < share < 0.005:
        return "under 1%"
    if 0.995 <= share < 1:
        return "over 99%"
    return f"{share:.0%}"


def level_text(level: float) -> str:
    """A level such as 0.95 as 95%."""
    return f"{100 * level:.10g}%"
