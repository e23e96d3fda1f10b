"""Text and numbers as HTML: escaped, labels isolated from the text direction around them, distances in one style."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

_ASSETS = resources.files("armslength.reporting").joinpath("assets")
_FIELD = re.compile(r"\{\{(\w+)\}\}")
_LARGEST_PLAIN, _SMALLEST_PLAIN = 1e7, 1e-4


def asset(file: str) -> str:
    """A template or style sheet of the page."""
    return _ASSETS.joinpath(file).read_text(encoding="utf-8")


def scripts() -> str:
    """All scripts of the page, in the order of their names."""
    files = sorted(_ASSETS.joinpath("script").iterdir(), key=lambda file: file.name)
    return "".join(file.read_text(encoding="utf-8") for file in files)


def escaped(text: str) -> str:
    """Text for use between tags and in quoted attributes."""
    return html.escape(text, quote=True)


def name(label: str) -> str:
    """A party's label, which keeps its own direction of writing."""
    return f"<bdi>{escaped(label)}</bdi>"


def some_names(labels: Sequence[str], most: int) -> str:
    """The first labels as a list in words, and how many more there are."""
    names = [name(label) for label in labels[:most]]
    names += [f"{len(labels) - most} more"] if len(labels) > most else []
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def fill(template: str, fields: Mapping[str, str]) -> str:
    """The template with its fields, which must be markup. Text like {{this}} inside a field stays as it is."""
    return _FIELD.sub(lambda match: fields[match[1]], template)


def section(identifier: str, heading: str, *parts: str, classes: str = "") -> str:
    """A section whose heading names it for assistive technology."""
    kind = f' class="{classes}"' if classes else ""
    body = "\n".join(filter(None, parts))
    return (
        f'<section id="{identifier}" aria-labelledby="{identifier}-heading"{kind}>\n'
        f'<h2 id="{identifier}-heading">{heading}</h2>\n{body}\n</section>'
    )


@dataclass(frozen=True)
class NumberStyle:
    """How distances are printed: all with the same decimals, so that columns can be compared by eye."""

    decimals: int | None  # digits after the point; None prints powers of ten

    @classmethod
    def of(cls, distances: NDArray[np.float64]) -> "NumberStyle":
        """The style that gives the median of these distances three digits."""
        positive = distances[np.isfinite(distances) & (distances > 0)]
        typical = float(np.median(positive)) if len(positive) else 1.0
        if not _SMALLEST_PLAIN <= typical < _LARGEST_PLAIN:
            return cls(None)
        return cls(max(0, 2 - math.floor(math.log10(typical))))

    def text(self, value: float) -> str:
        """One number. The script of the page prints numbers in the same way."""
        if math.isinf(value):
            return "∞"
        if self.decimals is None:
            return "0" if value == 0 else f"{value:.2e}"
        return f"{value:,.{self.decimals}f}"


def share_text(share: float) -> str:
    """A share in whole percents; 0 % and 100 % only for nothing and all."""
    if 0 < share < 0.005:
        return "under 1 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"
