"""What a folder of sketch files holds: from their footers, and of their rows only whether they are in the clear."""

from typing import TYPE_CHECKING, Any

from armslength.cli.answer_options import max_work
from armslength.cli.layout import LONGEST_LABEL, Column, heading, line, paragraph
from armslength.cli.listing import as_csv, as_json
from armslength.errors import counted

if TYPE_CHECKING:
    from armslength.search.collection import Collection

_MOST_FILES, _MOST_PROTOCOLS = 20, 2  # that are shown to people


def collection_listing(paths: tuple[str, ...], form: str) -> str:
    """The files of a collection as a "table" of the first of them, or all of them as "json" or "csv"."""
    from armslength.errors import printable  # noqa: PLC0415  # --help must not wait for it
    from armslength.protocol.card import release_card  # noqa: PLC0415  # the same
    from armslength.search.collection import open_collection  # noqa: PLC0415  # the same

    collection = open_collection(paths, max_work=max_work())
    files: list[dict[str, Any]] = [
        {
            "file": file.path,
            "rows": file.rows,
            "row_groups": len(file.group_rows),
            "bytes": file.size,
            "in_clear": any(any(file.in_clear(group)) for group in range(len(file.group_rows))),
        }
        for file in collection.files
    ]
    if form == "csv":
        return as_csv([{**file, "file": printable(file["file"])} for file in files])
    card = release_card(collection.releases, in_clear=any(file["in_clear"] for file in files))
    if form == "json":
        known = {"rows": len(collection), "sketch_dim": collection.transform.sketch_dim}
        return as_json({**known, "space": collection.space, "card": card, "files": files})
    return _page(printable(", ".join(paths)), collection, card, files)


def _page(name: str, collection: "Collection", card: dict[str, Any], files: list[dict[str, Any]]) -> str:
    from armslength.errors import printable  # noqa: PLC0415  # --help must not wait for it

    words = [card["words"]] if card["in_clear"] else [release["words"] for release in card["releases"]]
    columns = [
        Column("file", 2 * LONGEST_LABEL),
        *(Column.of_numbers(heading) for heading in ("rows", "row groups", "bytes")),
        Column("", len("NOT PRIVATE")),
    ]
    table = [
        line(
            columns,
            [
                printable(file["file"]),
                *(str(file[key]) for key in ("rows", "row_groups", "bytes")),
                "NOT PRIVATE" if file["in_clear"] else "",
            ],
        )
        for file in files
    ]
    return "\n".join(
        [
            (
                f"{name}: {counted(len(files), 'file')}, {counted(len(collection), 'row')} of {collection.transform.sketch_dim}"
                f" numbers, {collection.transform.name}{', with totals' if collection.has_totals else ''},"
                f" {sum(file['bytes'] for file in files):,} bytes"
            ),
            f"space {collection.space}",
            "",
            *map(paragraph, words[:_MOST_PROTOCOLS]),
            *_more(len(words) - _MOST_PROTOCOLS, "protocol"),
            "",
            heading(columns),
            *table[:_MOST_FILES],
            *_more(len(table) - _MOST_FILES, "file"),
        ]
    )


def _more(count: int, noun: str) -> list[str]:
    return [f"… and {counted(count, noun)} more; --format json has all"] if count > 0 else []
