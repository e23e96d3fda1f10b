"""docs/benchmarks.md, from the JSON of the last whole run of each benchmark."""

import json
from pathlib import Path
from typing import Any

from cases import Sizes

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
RESULTS = Path(__file__).parent / "results"
_TEXT = Path(__file__).parent / "page.md"
_SPARSE_RESULT = 8 * Sizes.sparse[0] * Sizes.sparse[2]  # bytes


def table(rows: list[dict[str, Any]]) -> str:
    """The ratios, one line for each work."""
    lines = [
        "| work | peer, and its fastest setting | ours, ms | theirs, ms | ratio | target | on the same array | reading the input, ms |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        setting = f": {row['fastest']}" if row["fastest"] else ""
        same = f"{row['same_ratio']:.1f}x" if row["same_ratio"] and row["same"] != row["fastest"] else ""
        limit = f"{1000 * row['limit']:.1f}" if row["limit"] is not None else ""
        theirs = row["theirs"][row["fastest"]]
        mark = "" if row["ratio"] >= row["target"] else " ✗"
        lines.append(
            f"| {row['work']} | {row['peer']}{setting} | {1000 * row['ours']:.1f} | {1000 * theirs:.1f} "
            f"| {_ratio(row['ratio'])}x{mark} | {row['target']:g}x | {same} | {limit} |"
        )
    return "\n".join(lines)


def _ratio(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.2g}" if ratio < 1 else f"{ratio:.1f}"


def _reasons(report: dict[str, Any]) -> dict[str, float]:
    """The numbers that the page's reasons name, in milliseconds and megabytes."""
    rows = {row["work"]: row for row in report["rows"]}
    single = {each["work"]: each for each in report["parts"]}
    names = {
        "dense": next(name for name in rows if "dense float32" in name and name.endswith("s=1")),
        "dense_many": next(name for name in rows if "dense float32" in name and name.endswith("s=8")),
        "counts": next(name for name in rows if "counts" in name),
        "sparse": next(name for name in rows if "sparse" in name and name.endswith("s=1")),
    }
    found = {"sparse_output": _SPARSE_RESULT / 1e6, "pairs_output": 8 * Sizes.pairs[0] ** 2 / 1e6}
    for short, name in names.items():
        row = rows[name]
        found[f"{short}_needed"] = 1000 * row["theirs"][row["fastest"]] / row["target"]
        for part in ("noise", "memory", "reading"):
            found[f"{short}_{part}"] = 1000 * single[name][part]
    return found


def write_page() -> None:
    """Writes the page of the last full run."""
    report = json.loads((RESULTS / "full.json").read_text(encoding="utf-8"))
    PAGE.write_text(_page(report), encoding="utf-8")


def _page(report: dict[str, Any]) -> str:
    """The whole page: the text of page.md with the numbers of the run."""
    memory = "\n".join(
        f"| {name} | {each['input'] / 1e6:,.0f} MB | {each['output'] / 1e6:,.0f} MB | {each['beyond_output'] / 1e6:,.0f} MB |"
        for name, each in (
            ("a file mapped into memory", report["memory"]["memmap"]),
            ("a stream of Arrow batches", report["memory"]["batches"]),
        )
    )
    columns = ("whole", "product", "noise", "memory", "reading")
    lines = [
        f"| {each['work']} | " + " | ".join(f"{1000 * each[name]:.1f}" for name in columns) + " |"
        for each in report["parts"]
    ]
    heads = "| work | whole | product | noise | memory of the result | reading the input |\n|---|---:|---:|---:|---:|---:|\n"
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return _TEXT.read_text(encoding="utf-8").format(
        table=table(report["rows"]),
        parts=heads + "\n".join(lines),
        **_reasons(report),
        growth="{:,} rows of {:,} columns, k = {}, s = {}, {} non-zeros per row".format(*Sizes.growth),
        memory=memory,
        first=report["starts"]["first"],
        second=report["starts"]["second"],
        cpu=report["cpu"],
        threads=report["threads"],
        commit=report["commit"][:10],
        date=report["date"],
        versions=versions,
    )
