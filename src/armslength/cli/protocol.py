"""What all parties agree on before any data is seen: `armslength protocol new` makes it, and `plan` chooses it."""

import sys
from typing import Any

import click

import armslength as al
from armslength.cli.options import (
    EXISTING_FILE,
    FILE,
    OVERWRITE,
    RELATION,
    all_of,
    check_new_file,
    choice,
    flag,
    option,
    record_options,
)
from armslength.cli.output import is_terminal, paragraph
from armslength.planner.least_people import least_people
from armslength.planner.predictions import smallest_resolved_distance
from armslength.privacy.exact_numbers import weakness
from armslength.protocol.contribution import VOTES, contribution_of
from armslength.protocol.record import checked_record, record_input_dim
from armslength.randomness.seeds import fresh_seed
from armslength.sketches.card import guarantee_in_words
from armslength.sketches.noises import UNKNOWN

_TRANSFORMS = ("SparseJL", "Identity")


# What every protocol has.
_data_options = all_of(
    record_options,
    option("--input-dim", "How many different items there are.  [default: an open vocabulary]", type=int),
    option(
        "--vocabulary",
        "A text file with one item name on each line, in order.",
        type=click.File(encoding="utf-8"),
        callback=lambda _context, _option, file: None if file is None else file.read().splitlines(),
    ),
    choice("--items", ["string", "int64"], "The type of the items of an open vocabulary."),
    flag("--open-vocabulary", "With --record: items need not be listed beforehand."),
    RELATION,
    option("--seed", "The public seed.  [default: a new one]"),
)

_LIST = "A public .csv or .parquet file with item (or prefix) and group: count people by item group, too."
_COLUMN = "Instead of {}: a column of --record whose values are item groups; may be repeated."
_UNIT = 'Who is protected, in words, such as "one patient".'


def _listed_or_columns(options: dict[str, Any], listed: str, columns: str) -> Any:
    """Takes item groups out of the options: a file that lists them, or columns of a record."""
    file, names = options.pop(listed), list(options.pop(columns))
    if names and file is not None:
        given = (
            part.opts[0]
            for part in click.get_current_context().command.params
            if part.name in (listed, columns)
        )
        raise click.UsageError(" cannot be combined with ".join(given))
    return names or file


@click.group()
def protocol() -> None:
    """Make a protocol: what all parties agree on before any data is seen.

    It holds the public matrix (as a seed), the privacy parameters, who is protected, and how data becomes integers. All
    parties use the same file. Sketches of protocols with the same space can be compared.
    """


@protocol.command(
    epilog="""\b
Examples:
  armslength protocol new --epsilon 1 --unit "one patient" --sketch-dim 512 --total-share 0.1 -o protocol.json
  armslength protocol new --epsilon 1 --contribution 20 --unit "one shop" --sketch-dim 512 -o protocol.json    amounts
  armslength protocol new --record age:18,40,65,80 --record sex --record admitted:month --pair age,sex \\
             --epsilon 1 --unit "one patient" --sketch-dim 256 --total-share 0.1 -o protocol.json    one row per person
  armslength protocol new --epsilon 1 --unit "one patient" --sketch-dim 512 --total-share 0.1 \\
             --item-groups chapters.csv --item-groups-share 0.3 --item-groups-limit 10 -o protocol.json    what differs, too
  armslength protocol new --record age:18,40,65,80 --record sex=F,M --item-group-column age --item-group-column sex \\
             --item-groups-share 0.3 --total-share 0.1 --epsilon 1 --unit "one patient" --sketch-dim 256 -o protocol.json

Every person has one vote, split evenly over all their different items, unless --contribution C asks for amounts. With --record, a table has
one row for each person, and its columns become items: numbers by public edges, categories as they are or as listed, dates by period, missing
as a value of its own.
With --item-groups, a release also tells how many people of each group have an item in each item group, such as a chapter of diagnoses:
`armslength explain` then shows what sets two parties apart. The file is public. A release needs it again, unless it lists prefixes.
`armslength plan` chooses settings for your numbers of people, and writes the same kind of file. Protocols for arrays are made in Python.
"""
)
@option("--unit", 'The unit of protection in words, such as "one patient"; asked for if left out.')
@choice("--transform", _TRANSFORMS, "The public matrix.")
@option("--sketch-dim", "How many numbers a sketch has; a multiple of the sparsity.", type=int)
@option("--sparsity", "SparseJL: how many rows each coordinate goes to.", default=1)
@choice(
    "--construction",
    ["block", "graph", "balanced"],
    "SparseJL: balanced is a little more accurate, and needs --input-dim.",
)
@option("--epsilon", "ε of each release, such as 1 or 0.5.", required=True)
@option(
    "--contribution",
    "Instead of a vote: for amounts, how many events of a person count at most.",
    type=int,
    metavar="C",
)
@option(
    "--total-share",
    "The share of ε for the number of people and how far chance reaches, which profiles need; 0.1 is usual.",
)
@option(
    "--spread-sample",
    "With votes: the share of people in whom it is measured how far chance reaches; tens of thousands in each party are plenty.",
)
@option("--item-groups", _LIST, type=EXISTING_FILE)
@option("--item-group-column columns", _COLUMN.format("--item-groups"), multiple=True, metavar="COLUMN")
@option("--item-groups-share share", "The share of ε for item groups; 0.3 is usual.")
@option(
    "--item-groups-limit limit",
    "How many item groups of a person count in full.  [default for --item-group-column: all]",
    type=int,
)
@option("--resolution", "For amounts: 1 for counts, or a power of two for other weights.  [default: 1]")
@_data_options
@OVERWRITE
@option("-o --output", "Where to write it.", required=True, type=FILE)
def new(unit: str | None, transform: str, overwrite: bool, output: str, **options: Any) -> None:
    """Write a protocol to a file, and print what it means."""
    check_new_file(output, overwrite=overwrite)
    recipe = checked_record(options["record"], options["record_pairs"])
    options["input_dim"] = record_input_dim(
        recipe, **{name: options.pop(name) for name in ("input_dim", "open_vocabulary")}
    )
    if not unit:
        if not is_terminal(sys.stdin):
            raise click.UsageError('--unit is missing: say who is protected, such as --unit "one patient"')
        unit = click.prompt("Who is protected? Say it in words, such as: one patient")
    if transform != "SparseJL" and options["input_dim"] is None and recipe is not None and recipe.unlisted:
        names = ", ".join(recipe.unlisted)
        raise click.UsageError(
            f"--transform {transform} needs all categories of {names}; "
            f"list them, such as --record {recipe.unlisted[0]}=A,B, or use SparseJL with --sketch-dim"
        )
    sizes = {
        name: options.pop(name) for name in ("input_dim", "sketch_dim", "sparsity", "construction", "seed")
    }
    groups = _listed_or_columns(options, "item_groups", "columns")
    share, limit = options.pop("share"), options.pop("limit")
    if any(part is not None for part in (groups, share, limit)):
        options["item_groups"] = al.ItemGroups(groups, share or 0, limit)
    if options["contribution"] is None:
        options["contribution"] = VOTES
    data = contribution_of(options)
    agreement = al.Protocol(_transform(transform, **sizes), data, unit=unit, **options)
    agreement.save(output)
    click.echo(description(agreement))
    table = ""
    if agreement.margins is not None and agreement.margins.rule == "table":
        table = f" and {groups} (a release needs it again: --item-groups {groups})"
    click.echo(f"\nwritten to {output}; give this file{table} to every party")


def _transform(
    name: str, *, input_dim: int | None, sketch_dim: int | None, seed: str | None, **sparse: Any
) -> Any:
    """The transform of that name; refuses options that it does not have."""
    if name == "Identity":
        if input_dim is None:
            raise click.UsageError("--transform Identity needs --input-dim")
        if sparse != {"sparsity": 1, "construction": "block"} or sketch_dim is not None:
            raise click.UsageError(
                "Identity has no --sketch-dim, --sparsity or --construction; leave them out"
            )
        return al.Identity(input_dim=input_dim)
    if sketch_dim is None:
        raise click.UsageError("--sketch-dim is missing; `armslength plan` finds a good one")
    seed = fresh_seed() if seed is None else seed
    return al.SparseJL(input_dim=input_dim, sketch_dim=sketch_dim, seed=seed, **sparse)


def _reach(protocol: "al.Protocol") -> str:
    """What can be seen at best, in a line."""
    if protocol.votes and protocol.total_share:
        return f"parties with fewer than about {least_people(protocol):,} people will be inconclusive about nearly everything, even in a single pair"
    return f"smallest detectable distance (95 %): about {smallest_resolved_distance(protocol):.4g}"


def description(protocol: "al.Protocol") -> str:
    """The protocol in words."""
    weak = weakness(protocol.epsilon, protocol.released_delta)
    optional = {
        "record": protocol.record,
        "margins": protocol.margins,
    }
    lines = [
        paragraph(guarantee_in_words(protocol, UNKNOWN)),
        "",
        protocol.transform.card(),
        *(f"  {name}: {text}" for name, text in optional.items() if text),
        f"  noise: {protocol.noise}, scale {protocol.law.scale:.6g} in integer units",
        f"  {_reach(protocol)}",
        f"  fingerprint {protocol.fingerprint}",
        f"  space       {protocol.space}   (sketches with the same space can be compared)",
        *([f"WARNING: {weak}"] if weak else []),
    ]
    return "\n".join(lines)
