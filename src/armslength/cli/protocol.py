"""`armslength protocol`: make or show what all parties agree on before any data is seen."""

import sys
from typing import Any

import click

import armslength as al
from armslength.cli.options import (
    NO_WORK_LIMIT,
    OVERWRITE,
    LocalPath,
    check_dimension,
    check_new_file,
    protocol_options,
    read_vocabulary,
    work_limit,
)
from armslength.cli.output import as_json, paragraph
from armslength.planner.predictions import smallest_resolved_distance
from armslength.privacy.exact_numbers import weakness
from armslength.protocol.schema import TRANSFORMS
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
  armslength protocol new --epsilon 1 --delta 1e-6 --radius 1 --unit "one visit" --transform HadamardJL \\
             --input-dim 70000 --sketch-dim 256 -o protocol.json

`armslength plan` finds the best settings for the distances that you expect, and writes the same kind of file.
"""
)
@click.option("--unit", help='The unit of protection in words, such as "one patient"; asked for if left out.')
@click.option(
    "--transform",
    type=click.Choice(_TRANSFORMS),
    default="SparseJL",
    show_default=True,
    help="The public matrix.",
)
@click.option("--sketch-dim", type=int, help="How many numbers a sketch has; a multiple of the sparsity.")
@click.option(
    "--sparsity",
    type=int,
    default=1,
    show_default=True,
    help="SparseJL: how many rows each coordinate goes to.",
)
@click.option(
    "--construction",
    type=click.Choice(["block", "graph", "balanced"]),
    default="block",
    show_default=True,
    help="SparseJL: balanced needs --input-dim, and is a little more accurate.",
)
@click.option(
    "--noise",
    type=click.Choice(["auto", "laplace", "gaussian"]),
    default="auto",
    show_default=True,
    help="auto: the law of the smaller exact variance.",
)
@click.option(
    "--dropped-bits", type=int, default=0, show_default=True, help="Low bits to drop after the noise."
)
@protocol_options
@OVERWRITE
@click.option("-o", "--output", required=True, type=LocalPath(dir_okay=False), help="Where to write it.")
def new(
    unit: str | None,
    transform: str,
    input_dim: int | None,
    open_vocabulary: bool,
    vocabulary: Any,
    overwrite: bool,
    output: str,
    **known: Any,
) -> None:
    """Write a protocol to a file, and print what it means."""
    check_new_file(output, overwrite=overwrite)
    check_dimension(input_dim, open_vocabulary=open_vocabulary)
    if not unit:
        if not is_terminal():
            raise click.UsageError('--unit must say who is protected, such as --unit "one patient"')
        unit = click.prompt("Who is protected? Say it in words, such as: one patient")

    sizes = {name: known.pop(name) for name in ("sketch_dim", "sparsity", "construction", "seed")}
    made = al.Protocol(
        _built(transform, input_dim, **sizes), unit=unit, vocabulary=read_vocabulary(vocabulary), **known
    )
    made.save(output)
    click.echo(described(made))
    click.echo(f"\nwritten to {output}; give this file to every party")


def is_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty()


def _built(
    name: str,
    input_dim: int | None,
    *,
    sketch_dim: int | None,
    sparsity: int,
    construction: str,
    seed: str | None,
) -> Any:
    """The transform of that name; refuses options that it does not have."""
    if name != "SparseJL" and input_dim is None:
        raise click.UsageError(f"--open-vocabulary must go with SparseJL, got {name}; say --input-dim")
    if name != "SparseJL" and (sparsity != 1 or construction != "block"):
        raise click.UsageError(
            f"--sparsity and --construction must go with SparseJL, got {name}; leave them out"
        )
    if name == "Identity":
        return TRANSFORMS[name](input_dim=input_dim)  # type: ignore[call-arg]  # each transform has its own arguments
    if sketch_dim is None:
        raise click.UsageError("--sketch-dim must be given; `armslength plan` finds a good one")
    extra = {"sparsity": sparsity, "construction": construction} if name == "SparseJL" else {}
    public_seed = fresh_seed() if seed is None else seed
    return TRANSFORMS[name](input_dim=input_dim, sketch_dim=sketch_dim, seed=public_seed, **extra)  # type: ignore[call-arg]  # the same


@protocol.command(
    epilog="""\b
Examples:
  armslength protocol show protocol.json
  armslength protocol show protocol.json --format json
"""
)
@click.argument("file", type=LocalPath(exists=True, dir_okay=False))
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@NO_WORK_LIMIT
def show(file: str, form: str) -> None:
    """Show a protocol: who is protected, how, and which distances can be told from 0."""
    loaded = al.Protocol.load(file, **work_limit())
    if form == "json":
        ids = {"fingerprint": loaded.fingerprint, "space": loaded.space}
        click.echo(as_json({**loaded.document(), **ids}))
    else:
        click.echo(described(loaded))


def described(protocol: "al.Protocol") -> str:
    """The protocol in words."""
    weak = weakness(protocol.epsilon, protocol.released_delta)
    lines = [
        paragraph(guarantee_in_words(protocol, UNKNOWN)),
        "",
        protocol.transform.card(),
        f"  noise: {protocol.noise}, scale {protocol.law.scale:.6g} in integer units",
        f"  two parties are told from equal ones at 95% from about {smallest_resolved_distance(protocol):.4g} on",
        f"  fingerprint {protocol.fingerprint}",
        f"  space       {protocol.space}   (sketches with the same space can be compared)",
        *([f"WARNING: {weak}"] if weak else []),
    ]
    return "\n".join(lines)
