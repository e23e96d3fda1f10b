"""Variance against ε, δ, k, s and distance: a line of theory and measured points for every method that depends on it."""

from collections.abc import Callable
from typing import Any

from reproduction.methods import METHODS, SWEEPS, Setting, measured

_LINE = 25


def sweep(name: str, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """For each method: the theory along the axis, and measurements at its stations."""
    _, stations, change = SWEEPS[name]
    found = []
    for method in METHODS:
        if name == "sparsity" and "sparsity" not in method.has and method.name != "SJLT, Gaussian":
            continue
        depends = name in ("epsilon", "distance") or name in method.has
        say(f"{name}: {method.name}")
        line = [(value, method.variance(change(Setting(), value))) for value in _between(name, stations)]
        points = []
        for value in stations if depends else stations[len(stations) // 2 :][:1]:
            setting = change(Setting(), value)
            variance, error = measured(method, setting, name)
            points.append(
                {"at": value, "variance": variance, "error": error, "theory": method.variance(setting)}
            )
        found.append({"method": method.name, "is_local": method.is_local, "line": line, "points": points})
    return found


def _between(name: str, stations: list[float]) -> list[float]:
    """Values for the line: geometric steps where any number will do, the stations where only whole ones do."""
    if name in ("sketch_dim", "sparsity", "distance"):
        return stations
    low, high = stations[0], stations[-1]
    return [low * (high / low) ** (step / (_LINE - 1)) for step in range(_LINE)]
