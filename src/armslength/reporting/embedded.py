"""What the page's script reads: JSON that cannot end its own element, and numbers as base64 of little-endian float32."""

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armslength.reporting.findings import Findings, Matrix

# None of these is needed in JSON, and without them no element can end or begin inside of it.
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def numbers(findings: Findings) -> str:
    """The numbers of a page, as JSON that is safe inside a script element."""
    rows, columns = findings.pairs
    signed = np.sign(findings.squared) * np.sqrt(np.abs(findings.squared))
    low, high = color_ends(findings)
    document: dict[str, Any] = {
        "labels": list(findings.labels),
        "order": list(findings.clustering.order) if findings.clustering else [0],
        "clear": [number for number, clear in enumerate(findings.in_clear) if clear],
        "decimals": findings.style.decimals,
        "low": low,
        "high": high,
        "longest": longest(findings, findings.pairs),
        "first": findings.closest()[0] if len(rows) else 0,
        "value": _packed(signed[rows, columns]),
        "lower": _packed(findings.lower[rows, columns]),
        "upper": _packed(findings.upper[rows, columns]),
    }
    return safe_json(document)


def safe_json(document: Any) -> str:
    """JSON without any character that HTML could read."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_UNSAFE.get(letter, letter) for letter in text)


def color_ends(findings: Findings) -> tuple[float, float]:
    """The distances at both ends of the colors: of all resolved pairs, unless few are far beyond the rest."""
    distances, resolved = findings.distance[findings.pairs], findings.resolved[findings.pairs]
    shown = distances[resolved] if resolved.any() else distances
    if not len(shown):
        return 0.0, 1.0
    high = min(float(shown.max()), 1.5 * float(np.quantile(shown, 0.95)))
    return float(shown.min()), high


def longest(findings: Findings, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]) -> float:
    """The distance at the right end of these pairs' error bars: the largest finite upper end."""
    upper, distance = findings.upper[pairs], findings.distance[pairs]
    finite = upper[np.isfinite(upper)]
    return float(max(finite.max(initial=0.0), distance.max(initial=0.0))) or 1.0


def _packed(values: Matrix) -> str:
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype("<f4")
    # What is above 0 stays above 0: it is what tells resolved pairs from others.
    small[(values > 0) & (small == 0)] = np.finfo(np.float32).tiny
    return base64.b64encode(small.tobytes()).decode("ascii")
