"""Plans: the best settings before any data is seen, or a clear no."""

from inspect import signature
from typing import Any, Literal, overload

from armslength.checks import integer, one_of, short_repr
from armslength.errors import ParameterError
from armslength.planner.shape_plan import ShapePlan, shape_plan, shape_situation
from armslength.planner.situation import (
    LARGEST_COUNT,
    SizeSituation,
    checked_explain,
    checked_pairs,
    checked_target,
    distances_of_interest,
    smallest_transform,
)
from armslength.planner.size_plan import Plan, size_plan
from armslength.privacy.exact_numbers import exact_number
from armslength.protocol.protocol import Protocol, check_settings_for_tables
from armslength.protocol.record import check_record_contribution, checked_record, record_input_dim
from armslength.randomness.seeds import checked_seed
from armslength.transforms.transform import checked_input_dim

_CHOSEN = frozenset(("transform", "noise", "noise_site", "dropped_bits"))
_SETTINGS = frozenset(signature(Protocol).parameters) - _CHOSEN


@overload
def plan(input_dim: int | None = None, *, by: Literal["size"] = "size", **options: Any) -> Plan: ...


@overload
def plan(input_dim: int | None = None, *, by: Literal["shape"], **options: Any) -> ShapePlan: ...


def plan(  # type: ignore[misc]  # noqa: PLR0913  # one argument for each thing that may be known; the types above name one
    input_dim: int | None = None,
    *,
    epsilon: Any,
    delta: Any = 0,
    distance: Any = None,
    people: int | None = None,
    margins: Any = None,
    item_groups: int | None = None,
    margin_share: Any = 0,
    margin_contribution: int | None = None,
    max_sketch_dim: int | None = None,
    distortion: float | None = None,
    failure_probability: float | None = None,
    parties: int | None = None,
    pairs: int | None = None,
    by: str = "size",
    beyond_chance: bool = False,
    concentration: float | None = None,
    explain: int | None = None,
    open_vocabulary: bool = False,
    seed: str | None = None,
    **settings: Any,
) -> Plan | ShapePlan:
    """The best settings for these distances, by exact error. It needs no data and spends no privacy.

    The relative error is largest at the smallest distance (V(D)/D² = a + b/D + c/D² falls), so the plan minimizes it there.
    Reference: docs/planning.md.

    Args:
        input_dim: How many coordinates; None for an open vocabulary, or for the items of a record that lists all categories.
        epsilon: ε of each release.
        delta: δ; 0 for pure DP alone.
        distance: The distances of interest, a number or (low, high), in data units.
        people: How many people a group has, instead of distance; needs `contribution`.
        margins: With by="shape": public groups of items, as for the protocol.
        item_groups: Instead: how many there will be, with (other), where they are not listed yet. Then there is no protocol.
        margin_share: The share of ε for margins; 0 lets the plan choose it.
        margin_contribution: How many item groups of one person count; None lets the plan choose it.
        max_sketch_dim: The largest sketch to recommend; None for 4096, or as many numbers as `explain` takes, up to 65,536.
        distortion: α of a Johnson-Lindenstrauss target |estimate − D| ≤ α·D for the squared distance D.
        failure_probability: β, how often that may fail, over all pairs.
        parties: How many parties are compared, all pairs together.
        pairs: How many pairs must hold together, instead of parties; 1 if neither is given.
        by: "size" for distances of counts, "shape" for those of mixes: then the result is a `ShapePlan`, from `people` and
            `contribution`, and total_share=0 lets the plan choose the share.
        beyond_chance: With by="shape": whether questions will be about the populations behind the people counted.
        concentration: With by="shape": how often two records of a party, drawn at random, are of the same item. None assumes
            Zipf's law over `input_dim` items, or over 1,000 items of an open vocabulary.
        explain: How many listed items `al.explain_items` will be asked about: the sketch is made for that, and the plan says what it
            costs for distances.
        open_vocabulary: Whether the vocabulary is open although a record lists all categories.
        seed: The public seed of the protocol; None makes a new one.
        settings: What else the protocol has, as for `al.Protocol`: contribution, or radius, relation, norm ("l2" for whole vectors
            in a ball: replacing one of norm at most r is radius=2r) and resolution; count, one_group, unit, items, vocabulary,
            record, record_pairs, total_share, on_grid, changed_entries, value_range.
    """
    for name in settings.keys() - _SETTINGS:
        raise ParameterError(
            f"{name} must be left out of a plan, which chooses it or cannot predict it, got one"
            if name in _CHOSEN
            else f"arguments of a plan must be its own or settings of al.Protocol, got {short_repr(name)}; see help(al.plan)"
        )
    recipe = checked_record(settings.get("record"), settings.get("record_pairs", ()))
    input_dim = record_input_dim(recipe, input_dim=input_dim, open_vocabulary=open_vocabulary)
    dimension = None if input_dim is None else checked_input_dim(input_dim)
    if recipe is not None:
        check_record_contribution(recipe, settings.get("contribution"))
    elif None not in (dimension, settings.get("contribution")) and settings.get("vocabulary") is None:
        settings["items"] = (
            "int64"  # a table's items are the numbers of these coordinates, which have no names
        )
    protocol = Protocol(
        smallest_transform(dimension, settings.get("norm")), epsilon=epsilon, delta=delta, **settings
    )
    if protocol.contribution is not None:
        check_settings_for_tables(protocol)
    if people is not None or by == "shape":
        people = integer("people", people, at_least=1, at_most=LARGEST_COUNT)
    item_count, largest = checked_explain(explain, max_sketch_dim, dimension)
    shared: dict[str, Any] = {
        "input_dim": dimension,
        "protocol": protocol,
        "epsilon": protocol.epsilon,
        "delta": protocol.delta,
        "people": people,
        "pairs": checked_pairs(parties, pairs),
        "max_sketch_dim": largest,
        "explain": item_count,
        "fields": settings,
    }
    seed = checked_seed(seed)
    for_margins = margins, item_groups, margin_share, margin_contribution
    if one_of("by", by, ("size", "shape")) == "shape":
        unused = {"distance": distance, "distortion": distortion, "failure_probability": failure_probability}
        for name in (name for name, value in unused.items() if value is not None):
            raise ParameterError(
                f'{name} must be left out with by="shape", got one; pass people and contribution'
            )
        return shape_plan(
            shape_situation(shared, concentration, for_margins, beyond_chance=beyond_chance), seed
        )
    if (
        beyond_chance
        or exact_number("margin_share", margin_share)
        or any(value is not None for value in (concentration, margins, item_groups, margin_contribution))
    ):
        raise ParameterError(
            'by must be "shape" with beyond_chance, concentration or margins, got "size"; add --by shape'
        )
    distances = distances_of_interest(distance, people, protocol.contribution, dimension)
    target = checked_target(distortion, failure_probability)
    return size_plan(SizeSituation(**shared, distances=distances, target=target), seed)
