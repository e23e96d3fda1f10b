"""Write docs/figures/overview.svg, the README's picture, from a real release of generated event tables."""  # noqa: INP001  # a script

from pathlib import Path

import numpy as np
import pyarrow as pa

import armslength as al

PICTURE = Path(__file__).parent / "figures" / "overview.svg"
PATIENTS = {
    "north": 3000,
    "south": 4500,
    "hill": 4000,
    "valley": 3500,
    "harbor": 2500,
    "bay": 3000,
    "children": 3500,
}
CELL, TOP, BARS = 36, 92, 36
TABLES, SKETCHES, MAP = 16, 278, 640  # where the three columns begin
STYLE = """
  svg { --ink: #1f2328; --quiet: #656d76; --line: #d0d7de; --far: #0a5aa8; --plus: #0a5aa8; --minus: #bc4c00; }
  @media (prefers-color-scheme: dark) {
    svg { --ink: #e6edf3; --quiet: #9198a1; --line: #3d444d; --far: #6cb6ff; --plus: #6cb6ff; --minus: #f0883e; }
  }
  text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--ink); }
  .quiet { fill: var(--quiet); font-size: 13px; }
  .head { font-weight: 600; font-size: 15px; }
  .end { text-anchor: end; }
  .middle { text-anchor: middle; }
  .line { stroke: var(--line); fill: none; }
  .arrow { stroke: var(--quiet); fill: none; stroke-width: 1.5; }
  .far { fill: var(--far); }
  .plus { fill: var(--plus); }
  .minus { fill: var(--minus); }
  .hatch { stroke: var(--quiet); stroke-width: 1.2; }
"""
DEFINITIONS = """<defs>
  <pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <line class="hatch" x1="0" y1="0" x2="0" y2="7"/>
  </pattern>
  <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
    <path class="arrow" d="M1,1 L7,4 L1,7"/>
  </marker>
</defs>"""


def main() -> None:
    """Release, compare and draw."""
    sketches = released()
    distances = al.distances(sketches, about="populations")
    differ = distances.resolved(0.95, simultaneous=True)
    height = TOP + CELL * len(sketches) + 62
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 944 {height}" role="img" aria-labelledby="title">',
        '<title id="title">Seven hospitals keep their tables, publish one sketch each, and anyone compares the sketches</title>',
        f"<style>{STYLE}</style>",
        DEFINITIONS,
        *heading(TABLES, "1. Private tables", "stay where they are"),
        *heading(SKETCHES, "2. Published sketches", "144 integers each (36 shown), noise included"),
        *heading(MAP, "3. Anyone compares", "how different are the profiles?"),
        *(line for row, name in enumerate(sketches.labels) for line in party(row, name)),
        *(line for row, values in enumerate(sketches.values) for line in sketch(row, values)),
        *heat_map(distances.value, differ),
        *legend(float(distances.value.max()), TOP + CELL * len(sketches) + 26),
        "</svg>",
    ]
    PICTURE.write_text("\n".join(parts) + "\n", encoding="utf-8")


def released() -> al.Sketches:
    """One sketch for each hospital: three of one mix, two of another, one between the two, one of its own."""
    rng = np.random.default_rng(7)  # for the generated data; noise has no seed
    usual = 1 / np.arange(1, 2001)
    city, coast, young = (np.concatenate([rng.permutation(usual[:200]), usual[200:]]) for _ in range(3))
    mixes = [city, city, city, (city + coast) / 2, coast, coast, young]
    tables = []
    for (hospital, count), mix in zip(PATIENTS.items(), mixes, strict=True):
        who = np.repeat(np.arange(count), rng.integers(1, 6, count))
        codes = rng.choice(len(mix), len(who), p=mix / mix.sum())
        tables.append(
            pa.table(
                {
                    "patient": [f"{hospital}-{number}" for number in who],
                    "code": [f"D{code}" for code in codes],
                    "hospital": [hospital] * len(who),
                }
            )
        )
    protocol = al.Protocol(
        al.SparseJL(input_dim=None, sketch_dim=144, seed="overview"),
        al.Votes(total_share="0.1"),
        epsilon=1,
        unit="one patient",
    )
    return al.release(
        protocol,
        pa.concat_tables(tables),
        person="patient",
        item="code",
        group="hospital",
        public_groups=list(PATIENTS),
        ledger=al.NO_LEDGER,
    )


def heading(x: float, title: str, subtitle: str) -> list[str]:
    """A column's title and what it says about it."""
    return [
        f'<text class="head" x="{x}" y="24">{title}</text>',
        f'<text class="quiet" x="{x}" y="44">{subtitle}</text>',
    ]


def party(row: int, name: str) -> list[str]:
    """A small table, the party's name, and the arrow to its sketch."""
    y = TOP + CELL * row
    rules = "".join(f"M{TABLES},{y + dy}h24 " for dy in (13, 19, 25))
    return [
        f'<rect class="line" x="{TABLES}" y="{y + 7}" width="24" height="22" rx="2"/>',
        f'<path class="line" d="{rules}M{TABLES + 8},{y + 7}v22 M{TABLES + 16},{y + 7}v22"/>',
        f'<text x="{TABLES + 36}" y="{y + 23}">{name}</text>',
        f'<text class="quiet end" x="{TABLES + 206}" y="{y + 23}">{PATIENTS[name]:,} patients</text>',
        f'<path class="arrow" d="M{TABLES + 218},{y + 18}h32" marker-end="url(#tip)"/>',
    ]


def sketch(row: int, values: np.ndarray) -> list[str]:
    """The first numbers of a released sketch, as bars up and down, and the arrow to the map."""
    y = TOP + CELL * row + 18
    tallest = np.abs(values[:BARS]).max()
    bars = [
        f'<rect class="{"plus" if value > 0 else "minus"}" x="{SKETCHES + 7 * number}" width="5"'
        f' y="{y - max(size, 0):.1f}" height="{abs(size):.1f}"/>'
        for number, value in enumerate(values[:BARS])
        for size in [15 * np.cbrt(value / tallest)]  # cube roots, so that small numbers can be seen
    ]
    return [*bars, f'<path class="arrow" d="M{SKETCHES + 7 * BARS + 8},{y}h26" marker-end="url(#tip)"/>']


def heat_map(distances: np.ndarray, differ: np.ndarray) -> list[str]:
    """All pairs: darker is farther, hatched: no difference found."""
    parts = []
    for row, column in np.ndindex(distances.shape):
        x, y = MAP + CELL * column, TOP + CELL * row
        box = f'x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" rx="3"'
        if row == column:
            parts.append(f'<rect class="line" {box}/>')
        elif differ[row, column]:
            opacity = 0.12 + 0.88 * distances[row, column] / distances.max()
            parts.append(f'<rect class="far" fill-opacity="{opacity:.2f}" {box}/>')
        else:
            parts.append(f'<rect class="line" style="fill: url(#hatch)" {box}/>')
    names = [
        f'<text class="quiet" transform="translate({MAP + CELL * number + 22},{TOP - 6}) rotate(-35)">{name}</text>'
        for number, name in enumerate(PATIENTS)
    ]
    return [*parts, *names]


def legend(farthest: float, y: float) -> list[str]:
    """What color and hatching mean."""
    steps = [
        f'<rect class="far" fill-opacity="{0.12 + 0.88 * step / 5:.2f}" x="{MAP + 32 + 16 * step}" y="{y - 11}" width="16" height="14"/>'
        for step in range(6)
    ]
    return [
        f'<text class="quiet end" x="{MAP + 26}" y="{y}">0</text>',
        *steps,
        f'<text class="quiet" x="{MAP + 134}" y="{y}">{farthest:.2f} apart</text>',
        f'<rect class="line" style="fill: url(#hatch)" x="{MAP + 32}" y="{y + 13}" width="16" height="14"/>',
        f'<text class="quiet" x="{MAP + 56}" y="{y + 25}">no difference found beyond chance</text>',
    ]


if __name__ == "__main__":
    main()
