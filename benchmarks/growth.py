"""How the time of a release grows with each size, the others held: the paper says O(s·non-zeros + k) for a row."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cases import Sizes
from matplotlib import pyplot as plt
from scipy import sparse
from timing import best_seconds

import armslength as al

N, D, K, S, NONZEROS = Sizes.growth
_REPEATS = 4


def _seconds(n: int = N, d: int = D, k: int = K, s: int = S, nonzeros: int = NONZEROS) -> float:
    generator = np.random.default_rng(0)
    columns = np.sort(generator.integers(0, d - nonzeros, (n, nonzeros)), axis=1) + np.arange(nonzeros)
    entries = np.ones(n * nonzeros, dtype=np.int32), columns.ravel(), np.arange(0, n * nonzeros + 1, nonzeros)
    X = sparse.csr_array(entries, shape=(n, d))
    protocol = al.Protocol(al.SparseJL(input_dim=d, sketch_dim=k, sparsity=s, seed="growth"), epsilon=1)
    return best_seconds(partial(al.release, protocol, X, ledger=al.NO_LEDGER), _REPEATS)


def _axes(steps: int) -> Iterator[tuple[str, list[int], Callable[[int], float]]]:
    yield "rows n", [N << i for i in range(steps)], lambda n: _seconds(n=n)
    yield "columns d", [D // (1 << (steps - 1)) << i for i in range(steps)], lambda d: _seconds(d=d)
    yield "sketch size k", [K << i for i in range(steps)], lambda k: _seconds(k=k)
    yield "sparsity s", [1 << i for i in range(steps)], lambda s: _seconds(s=s)
    yield "non-zeros a row", [NONZEROS << i for i in range(steps)], lambda z: _seconds(nonzeros=z)


def growth(steps: int) -> dict[str, Any]:
    """Seconds at each size, along each axis."""
    _seconds()
    return {
        name: {"sizes": sizes, "seconds": [measure(size) for size in sizes]}
        for name, sizes, measure in _axes(steps)
    }


def draw_growth(found: dict[str, Any], path: Path) -> None:
    """One small plot for each axis, time against size, from 0."""
    mpl.rcParams["svg.hashsalt"] = "armslength"
    figure, axes = plt.subplots(1, len(found), figsize=(13, 2.6), layout="constrained")
    for axis, (name, each) in zip(axes, found.items(), strict=True):
        sizes, milliseconds = np.array(each["sizes"]), 1000 * np.array(each["seconds"])
        slope, start = np.polyfit(sizes, milliseconds, 1)
        axis.plot([0, sizes[-1]], [start, start + slope * sizes[-1]], color="0.8", linewidth=4)
        axis.plot(sizes, milliseconds, "o", color="tab:blue", markersize=4)
        axis.set(xlabel=name, xlim=(0, None), ylim=(0, None))
        axis.spines[["top", "right"]].set_visible(False)
        axis.ticklabel_format(style="plain")
        axis.locator_params(axis="x", nbins=3)
    axes[0].set_ylabel("milliseconds")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
