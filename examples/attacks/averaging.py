"""Averaging repeated releases: what it reveals, and how the ledger stops it.

    python examples/attacks/averaging.py

The attacker knows the public matrix, ε, and all of the data except whether one person is in it. That person adds 1 to one item. A careless
party releases the same data again and again with fresh noise. The attacker combines all releases: the error of the mean falls as 1/√n, and the
likelihood of all n releases shows more and more often whether the person is there.

This is not a fault of the noise; composition predicts it. n releases of ε are one of n·ε, and Gaussian noise of μ = Δ₂/σ becomes √n·μ. So
the ledger counts. It refuses a label that was already released. For a new label it charges the budget, and it refuses everything once the
budget is spent. Averaging can then achieve no more than the budget allowed, and the budget was fixed before any data was seen.
"""

import math
import tempfile
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

import armslength as al

SKETCH, SPARSITY, EPSILON, DELTA = 16, 4, "0.25", "1e-6"
BUDGET = 1
ITEMS = 50


def protocol_of(noise: str) -> al.Protocol:
    """The protocol: one person adds 1 to one item."""
    transform = al.SparseJL(input_dim=ITEMS, sketch_dim=SKETCH, sparsity=SPARSITY, seed="averaging")
    delta = DELTA if noise == "gaussian" else 0
    return al.Protocol(
        transform, al.Arrays(radius=1), epsilon=EPSILON, delta=delta, noise=noise, unit="one person"
    )


def repeated(protocol: al.Protocol, x: NDArray[np.int64], times: int, trials: int) -> NDArray[np.int64]:
    """The same row released `times` times with fresh noise and without a ledger: trials x times x k."""
    rows = np.tile(x, (times * trials, 1))
    values = al.release(protocol, rows, ledger=al.NO_LEDGER).values
    return values.reshape(trials, times, -1)


def error_of_mean(protocol: al.Protocol, x: NDArray[np.int64], times: int, trials: int) -> float:
    """The root mean squared error of one coordinate of the mean of `times` releases, in integer units."""
    truth = protocol.transform.apply(x[None, :])[0]
    return float(np.sqrt(((repeated(protocol, x, times, trials).mean(axis=1) - truth) ** 2).mean()))


def right_guesses(protocol: al.Protocol, times: int, trials: int) -> float:
    """The share of right guesses from the likelihood of all releases, if a fair coin decided whether the person is there."""
    others = np.arange(ITEMS)  # known to the attacker
    person = np.eye(1, ITEMS, 7, dtype=np.int64)[0]
    step = protocol.transform.apply(person[None, :])[0]
    known = protocol.transform.apply(others[None, :])[0]
    right = 0.0
    for present in (0, 1):
        seen = repeated(protocol, others + present * person, times, trials) - known
        if protocol.noise == "laplace":
            favor = (np.abs(seen) - np.abs(seen - step)).sum(axis=(1, 2))
        else:
            favor = (2 * seen @ step - step @ step).sum(axis=1)
        believed = np.where(favor == 0, 0.5, favor > 0)  # toss a coin on a tie
        right += float((believed if present else 1 - believed).mean()) / 2
    return right


def allowed_guesses(protocol: al.Protocol, times: int) -> float:
    """The share that composition allows: e^(nε)/(1 + e^(nε)), or Φ(√n·μ/2) for Gaussian noise, which is reached."""
    if protocol.noise == "laplace":
        return 1 / (1 + math.exp(-times * float(protocol.epsilon)))
    mu = math.sqrt(protocol.transform.l2_sensitivity_squared) / protocol.law.scale
    return NormalDist().cdf(math.sqrt(times) * mu / 2)


def released_until_refused(folder: Path) -> tuple[list[str], list[str]]:
    """(labels that a ledger with a budget allowed, its messages about the others)."""
    protocol, ledger = protocol_of("laplace"), al.Ledger(folder / "ledger.sqlite", create=True)
    ledger.set_budget("people", BUDGET, unit="one person")
    released, refusals = [], []
    x = np.arange(ITEMS)[None, :]
    for label in ("first", "first", "second", "third", "fourth", "fifth"):
        try:
            al.release(protocol, x, labels=[label], population="people", ledger=ledger)
            released.append(label)
        except al.BudgetError as refused:
            refusals.append(str(refused))
    return released, refusals


def main() -> None:
    """Average without a ledger, then try it with one."""
    x = np.arange(ITEMS)
    laplace, gaussian = protocol_of("laplace"), protocol_of("gaussian")
    print(f"The same data released n times at ε = {EPSILON} without a ledger:\n")
    print("      n   error of the mean   ε of all    right guesses about one person (allowed by composition)")
    print(
        "                                            Laplace            Gaussian, δ = 1e-6   (± standard error)"
    )
    for times in (1, 4, 16, 64, 256):
        trials = max(40_000 // times, 1000)
        error = error_of_mean(laplace, x, times, 200)
        cells = [
            f"{right_guesses(protocol, times, trials):6.1%} ({word} {allowed_guesses(protocol, times):6.1%})"
            for protocol, word in ((laplace, "≤"), (gaussian, "≈"))
        ]
        chance = math.sqrt(0.25 / (2 * trials))  # at most
        print(
            f"  {times:5} {error:15.2f} {times * float(EPSILON):13g}      {cells[0]}   {cells[1]}   (± {chance:.1%})"
        )
    print(f"\nA ledger with a budget of ε = {BUDGET}:\n")
    with tempfile.TemporaryDirectory() as folder:
        released, refusals = released_until_refused(Path(folder))
    print(f"  released: {', '.join(released)}")
    for refusal in refusals:
        print(f"  refused:  {refusal}")
    best = allowed_guesses(laplace, len(released))
    print(
        f"\n  Averaging the {len(released)} releases gives at most {best:.1%} right guesses, as the budget intended."
    )


if __name__ == "__main__":
    main()
