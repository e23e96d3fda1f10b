"""`armslength protocol`: make or show what all parties agree on before any data is seen."""

import sys
from typing import Any

import click

import armslength as al
from armslength.cli.options import (
    EXISTING_FILE,
    FILE,
    NO_WORK_LIMIT,
    OVERWRITE,
    check_dimension,
    check_new_file,
    choice,
    margin_options,
    option,
    protocol_options,
    take_margins,
    work_limit,
)
from armslength.cli.output import as_json, is_terminal, paragraph
from armslength.errors import plural
from armslength.planner.predictions import smallest_resolved_distance
from armslength.privacy.exact_numbers import decimal_text, weakness
from armslength.protocol.record import checked_record
from armslength.randomness.seeds import fresh_seed
from armslength.sketches.card import guarantee_in_words
from armslength.sketches.noises import UNKNOWN

_TRANSFORMS = ("SparseJL", "HadamardJL", "FastJL", "GaussianJL", "SignJL", "Identity")


@click.group()
def protocol() -> None:
    """Make or show a protocol: what all parties agree on before any data is seen.

    It holds the public matrix (as a seed), the privacy parameters, who is protected, and how data becomes integers. All
    parties use the same file. Sketches of protocols with the same space can be compared.
    """


@protocol.command(
    epilog="""\b
Examples:
  armslength protocol new --epsilon 1 --contribution 20 --unit "one patient" --sketch-dim 512 --open-vocabulary \\
             --seed trial-2026 -o protocol.json
  armslength protocol new --epsilon 1 --contribution 20 --unit "one patient" --sketch-dim 512 --open-vocabulary \\
             --total-share 0.1 -o protocol.json                      shapes can be compared, too
  armslength protocol new --epsilon 1 --delta 1e-6 --contribution 100 --max-norm 11 --unit "one customer" \\
             --sketch-dim 2048 --open-vocabulary -o protocol.json    people with many items: 11 is about √(1.2 · 100)
  armslength protocol new --epsilon 1 --delta 1e-6 --radius 1 --unit "one visit" --transform HadamardJL \\
             --input-dim 70000 --sketch-dim 256 -o protocol.json
  armslength protocol new --record age:18,40,65,80 --record sex --record admitted:month --pair age,sex \\
             --epsilon 1 --unit "one patient" --sketch-dim 256 --total-share 0.1 -o protocol.json    one row per person
  armslength protocol new --record age:18,40,65,80 --record sex=F,M --transform Identity --epsilon 1 \\
             --unit "one patient" -o protocol.json                   a noisy histogram of listed categories
  armslength protocol new --epsilon 1 --contribution 20 --one-group --unit "one patient" --sketch-dim 512 --open-vocabulary \\
             --margins chapters.csv --margin-share 0.2 --margin-contribution 3 -o protocol.json    what differs, too
  armslength protocol new --record age:18,40,65,80 --record sex=F,M --margin-column age --margin-column sex \\
             --margin-share 0.2 --epsilon 1 --unit "one patient" --sketch-dim 256 -o protocol.json

With --record, a table has one row for each person, and its columns become items: numbers by public edges, categories as they are or as
listed, dates by period, missing as a value of its own. The contribution is then the number of columns and pairs.
With --margins, a release also tells how many people of each group have an item in each item group, such as a chapter of diagnoses:
`armslength explain` then says in what two groups differ. The file is public. A release needs it again, unless it lists prefixes.
`armslength plan` finds the best settings for the distances that you expect, and writes the same kind of file.
"""
)
@click.option("--unit", help='The unit of protection in words, such as "one patient"; asked for if left out.')
@choice("--transform", values=_TRANSFORMS, text="The public matrix.")
@click.option("--sketch-dim", type=int, help="How many numbers a sketch has; a multiple of the sparsity.")
@option("--sparsity", default=1, help="SparseJL: how many rows each coordinate goes to.")
@choice(
    "--construction",
    values=["block", "graph", "balanced"],
    text="SparseJL: balanced needs --input-dim, and is a little more accurate.",
)
@choice(
    "--noise", values=["auto", "laplace", "gaussian"], text="auto: the law of the smaller exact variance."
)
@click.option(
    "--max-norm",
    help="Bound each person's part of all sketches to this length, with Gaussian noise: less noise where --contribution is large. "
    "The root of 1.2 times the contribution keeps nearly all of that many different items. Event tables only.",
)
@click.option(
    "--item-weights",
    type=EXISTING_FILE,
    help="A public .csv or .parquet file with the columns item and weight; items that it does not list count nothing.",
)
@margin_options
@option("--dropped-bits", default=0, help="Low bits to drop after the noise.")
@protocol_options
@OVERWRITE
@click.option("-o", "--output", required=True, type=FILE, help="Where to write it.")
def new(unit: str | None, transform: str, overwrite: bool, output: str, **known: Any) -> None:
    """Write a protocol to a file, and print what it means."""
    check_new_file(output, overwrite=overwrite)
    check_dimension(known)
    take_margins(known)
    if not unit:
        if not is_terminal(sys.stdin):
            raise click.UsageError('--unit must say who is protected, such as --unit "one patient"')
        unit = click.prompt("Who is protected? Say it in words, such as: one patient")
    recipe = checked_record(known["record"], known["record_pairs"])
    if transform != "SparseJL" and known["input_dim"] is None and recipe is not None and recipe.unlisted:
        names = ", ".join(recipe.unlisted)
        raise click.UsageError(
            f"--transform {transform} must know all categories, got no list for {names}; "
            f"list them, such as --record {recipe.unlisted[0]}=A,B, or use SparseJL with --sketch-dim"
        )
    sizes = {
        name: known.pop(name) for name in ("input_dim", "sketch_dim", "sparsity", "construction", "seed")
    }
    agreement = al.Protocol(_transform(transform, **sizes), unit=unit, **known)
    agreement.save(output)
    click.echo(description(agreement))
    click.echo(
        f"\nwritten to {output}; give this file{_and_table(agreement, known['margins'])} to every party"
    )


def _and_table(agreement: "al.Protocol", table: Any) -> str:
    """The table of items that a release needs again, if it needs one."""
    if agreement.margins is None or agreement.margins.rule != "table":
        return ""
    return f" and {table} (a release needs it again: --margins {table})"


def _transform(
    name: str, *, input_dim: int | None, sketch_dim: int | None, seed: str | None, **sparse: Any
) -> Any:
    """The transform of that name; refuses options that it does not have."""
    if name != "SparseJL":
        if input_dim is None:
            raise click.UsageError(f"--open-vocabulary must go with SparseJL, got {name}; say --input-dim")
        if sparse != {"sparsity": 1, "construction": "block"}:
            raise click.UsageError(
                f"--sparsity and --construction must go with SparseJL, got {name}; leave them out"
            )
        sparse = {}
        if name == "Identity":
            return al.Identity(input_dim=input_dim)
    if sketch_dim is None:
        raise click.UsageError("--sketch-dim must be given; `armslength plan` finds a good one")
    seed = fresh_seed() if seed is None else seed
    return getattr(al, name)(input_dim=input_dim, sketch_dim=sketch_dim, seed=seed, **sparse)


@protocol.command(
    epilog="""\b
Examples:
  armslength protocol show protocol.json
  armslength protocol show protocol.json --format json
"""
)
@click.argument("file", type=EXISTING_FILE)
@choice("--format", "form", values=["table", "json"])
@NO_WORK_LIMIT
def show(file: str, form: str) -> None:
    """Show a protocol: who is protected, how, and which distances can be told from 0."""
    loaded = al.Protocol.load(file, **work_limit())
    if form == "json":
        ids = {"fingerprint": loaded.fingerprint, "space": loaded.space}
        click.echo(as_json({**loaded.document(), **ids}))
    else:
        click.echo(description(loaded))


def description(protocol: "al.Protocol") -> str:
    """The protocol in words."""
    weak = weakness(protocol.epsilon, protocol.released_delta)
    norm = "" if protocol.max_norm is None else decimal_text(protocol.max_norm)
    optional = {
        "record": protocol.record,
        "item weights": protocol.item_weights and f"the list with SHA-256 {protocol.item_weights}",
        "max norm": norm and f"{norm}, of each person's part of all sketches",
    }
    lines = [
        paragraph(guarantee_in_words(protocol, UNKNOWN)),
        "",
        protocol.transform.card(),
        *(f"  {name}: {text}" for name, text in optional.items() if text),
        *([] if protocol.margins is None else _margin_lines(protocol)),
        f"  noise: {protocol.noise}, scale {protocol.law.scale:.6g} in integer units",
        f"  two parties are told from equal ones at 95% from about {smallest_resolved_distance(protocol):.4g} on",
        f"  fingerprint {protocol.fingerprint}",
        f"  space       {protocol.space}   (sketches with the same space can be compared)",
        *([f"WARNING: {weak}"] if weak else []),
    ]
    return "\n".join(lines)


def _margin_lines(protocol: "al.Protocol") -> list[str]:
    """What a release tells about item groups, and with how much noise."""
    law, bound = protocol.margin_law, protocol.margin_contribution or 0
    noise = "" if law is None else f"{law.name.capitalize()} noise of scale {law.scale:.4g}"
    return [
        f"  margins: {protocol.margins}",
        f"    how many people of each row have an item in each, with {noise}, at ε = {decimal_text(protocol.margins_epsilon)}",
        f"    at most {plural(bound, 'item group')} of one person {'counts' if bound == 1 else 'count'}, over all rows",
    ]
