"""Do publishers reach the same audience? Compare private event tables that nobody shares, with error bars.

    python examples/audience_overlap.py

Four publishers each have a private table of (user, interest). Each publisher makes two releases, for two questions:

    interests   Each user has one vote, split over their interests. How alike are the audiences, and which publisher is nearest to which?
    users       The items are the users, once each. The inner product of two rows is the number of users that both have.

Every release protects one user with all of their events. A user of all four publishers is in eight releases and spends the ε of each. The
data is generated, so the script prints the truth beside each answer.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import armslength as al

PUBLISHERS = ("news", "sport", "travel", "cooking")
INTERESTS, EVERYBODY = 3000, 150_000
READERS = (50_000, 40_000, 30_000, 25_000)
INTERESTS_PER_USER = 2  # typically; a guess is enough for a plan

Audience = tuple[NDArray[np.int64], NDArray[np.int64]]  # the user and the interest of each event


def generated_audiences(generator: np.random.Generator) -> list[Audience]:
    """One event table per publisher. Sport and news share many readers; travel and cooking share interests."""
    frequency = 1 / np.arange(1, INTERESTS + 1)
    general, leisure = (
        np.concatenate([generator.permutation(frequency[:400]), frequency[400:]]) for _ in range(2)
    )
    leisure_share = (0.0, 0.2, 0.8, 1.0)
    audiences = []
    for number, readers in enumerate(READERS):
        pool = EVERYBODY // 2 if number < 2 else EVERYBODY  # news and sport draw from the same half
        users = generator.choice(pool, readers, replace=False)
        events = np.ceil(generator.pareto(1.5, readers) + 1).clip(max=100).astype(np.int64)
        mix = (1 - leisure_share[number]) * general + leisure_share[number] * leisure
        interests = generator.choice(INTERESTS, events.sum(), p=mix / mix.sum())
        audiences.append((np.repeat(users, events), interests))
    return audiences


def released(tables: list[pa.Table], protocol: al.Protocol, item: str) -> al.Sketches:
    """One row per publisher. In practice each publisher runs this itself, with its own ledger."""
    rows = [
        al.release(protocol, table, person="user", item=item, label=name, ledger=al.NO_LEDGER)
        for name, table in zip(PUBLISHERS, tables, strict=True)
    ]
    return al.concat(rows)


def show(title: str, estimate: al.Estimate, truth: NDArray[np.float64], digits: int) -> None:
    """Print every pair with its interval and the truth."""
    lower, upper = estimate.interval(0.95)
    print(f"\n{title}\n  {'':18}  estimate          95% interval       truth")
    for i, j in zip(*np.triu_indices(len(PUBLISHERS), 1), strict=True):
        pair = f"{PUBLISHERS[i]}, {PUBLISHERS[j]}"
        cells = (estimate.value[i, j], lower[i, j], upper[i, j], truth[i, j])
        value, low, high, true = (f"{cell:,.{digits}f}" for cell in cells)
        print(f"  {pair:18}  {value:>8}  {low:>8} to {high:>8}  {true:>10}")
    if estimate.note:
        print(f"  ({estimate.note})")


def interests_compared(audiences: list[Audience]) -> None:
    """The first question: plan, release, compare."""
    plan = al.plan(
        epsilon=1,
        people=(min(READERS), max(READERS)),
        items_per_person=INTERESTS_PER_USER,
        parties=len(PUBLISHERS),
        unit="one user",
        seed="interests-2026",
    )
    print(f"1. Interests. Will it work?\n\n{plan.summary}")
    tables = [
        pa.table({"user": users, "interest": [f"interest {number}" for number in interests.tolist()]})
        for users, interests in audiences
    ]
    sketches = released(tables, plan.protocol, "interest")
    mixes = np.array([votes(*audience) for audience in audiences])
    unit = mixes / np.linalg.norm(mixes, axis=1, keepdims=True)
    show("Similarity of interests (1: the same)", al.similarities(sketches, about="people"), unit @ unit.T, 3)
    distances = np.linalg.norm(mixes[:, None] - mixes[None], axis=2)
    show("Distance of interests", al.distances(sketches, about="people"), distances, 4)
    print(f"\n{al.nearest(sketches, count=1, about='people')}")


def votes(users: NDArray[np.int64], interests: NDArray[np.int64]) -> NDArray[np.float64]:
    """The true shares of all interests, where each user has one vote, split over their different interests."""
    who, what = np.unique(np.stack([users, interests]), axis=1)
    number, different = np.unique(who, return_inverse=True, return_counts=True)[1:]
    shares: NDArray[np.float64] = np.bincount(what, 1 / different[number], INTERESTS) / len(different)
    return shares


def users_compared(audiences: list[Audience]) -> None:
    """The second question. The item is the user, whose only row counts 1: an amount, and the contribution is 1."""
    protocol = al.Protocol(
        al.SparseJL(input_dim=None, sketch_dim=4096, seed="users-2026"),
        al.Counts(1),
        epsilon=1,
        unit="one user",
        items="int64",
    )
    users = [np.unique(who) for who, _ in audiences]
    tables = [pa.table({"user": who, "same user": who}) for who in users]
    sketches = released(tables, protocol, "same user")
    shared = np.array([[len(np.intersect1d(a, b)) for b in users] for a in users], dtype=float)
    print("\n2. Users. The inner product of two rows is the number of shared users:")
    show("Shared users", al.inner_products(sketches), shared, 0)
    print("  The width comes mostly from the projection, about √(users·users/4096), not from the noise.")


def main() -> None:
    """Answer both questions and print their cost."""
    audiences = generated_audiences(np.random.default_rng(2026))  # for the generated data; noise has no seed
    interests_compared(audiences)
    users_compared(audiences)
    print("\nA user of one publisher spent ε = 2 in two releases. A user of all four publishers spent ε = 8.")


if __name__ == "__main__":
    main()
