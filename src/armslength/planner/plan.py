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
)
from armslength.planner.size_plan import Plan, size_plan
from armslength.privacy.exact_numbers import exact_number
from armslength.protocol.contribution import VOTES, Arrays, Counts, Votes, contribution_of
from armslength.protocol.protocol import Protocol
from armslength.protocol.record import checked_record, record_input_dim
from armslength.randomness.seeds import checked_seed
from armslength.transforms.sparse_jl import SparseJL
from armslength.transforms.transform import checked_input_dim

_CHOSEN = frozenset(("transform", "noise", "noise_site"))
_OF_PERSON = {name for kind in (Votes, Counts, Arrays) for name in signature(kind).parameters}
_SETTINGS = (_OF_PERSON | signature(Protocol).parameters.keys()) - _CHOSEN - {"data", "item_groups"}


@overload
def plan(input_dim: int | None = None, *, by: Literal["size"], **options: Any) -> Plan: ...


@overload
def plan(input_dim: int | None = None, *, by: Literal["shape"], **options: Any) -> ShapePlan: ...


@overload
def plan(input_dim: int | None = None, *, by: None = None, **options: Any) -> Any: ...


def plan(  # type: ignore[misc]  # noqa: PLR0913  # one argument for each thing that may be known; the types above name one
    input_dim: int | None = None,
    *,
    epsilon: Any,
    people: Any = None,
    parties: int | None = None,
    pairs: int | None = None,
    items_per_person: float | None = None,
    margins: Any = None,
    item_groups: int | None = None,
    item_groups_per_person: float | None = None,
    margin_share: Any = 0,
    margin_contribution: int | None = None,
    concentration: float | None = None,
    explain: int | None = None,
    max_sketch_dim: int | None = None,
    by: str | None = None,
    beyond_chance: bool = True,
    open_vocabulary: bool = False,
    seed: str | None = None,
    delta: Any = 0,
    distance: Any = None,
    distortion: float | None = None,
    failure_probability: float | None = None,
    **settings: Any,
) -> Plan | ShapePlan:
    """The best settings before any data is seen, and what they will show. It needs no data and spends no privacy.

    For event tables and records, in which every person has one vote, pass `people`: the result is a `ShapePlan`. For counts and arrays, pass
    `distance`, or `people` with a `contribution`: the result is a `Plan`, by the exact error of squared distances.
    Reference: docs/planning.md.

    Args:
        input_dim: How many coordinates; None for an open vocabulary, or for the items of a record that lists all categories.
        epsilon: ε of each release.
        people: How many people a party has: a number, or for votes a range (low, high).
        parties: How many parties are compared, all pairs together.
        pairs: How many pairs must hold together, instead of parties; 1 if neither is given.
        items_per_person: How many different items a person typically has; a guess is enough. None takes 5, or those of the record.
        margins: Public groups of items, as for the protocol.
        item_groups: How many there will be, with (other), where they are not listed yet. Then there is no protocol.
        item_groups_per_person: In how many item groups a person typically has items; None if that is not known.
        margin_share: The share of ε for margins; 0 lets the plan choose it.
        margin_contribution: How many item groups of one person count in full; None takes so many that nearly everybody has fewer.
        concentration: How often two votes of a party, drawn at random, are for the same item. None assumes Zipf's law over `input_dim`
            items, or over 1,000 items of an open vocabulary.
        explain: How many listed items `al.explain_items` will be asked about: the sketch is made for that, and the plan says what it
            costs.
        max_sketch_dim: The largest sketch to recommend; None for 4096, or as many numbers as `explain` takes, up to 65,536.
        by: "shape" for mixes, which votes are about, or "size" for distances of counts and arrays. None: by what else is given.
        beyond_chance: For votes: whether questions will be about the populations behind the people counted.
        open_vocabulary: Whether the vocabulary is open although a record lists all categories.
        seed: The public seed of the protocol; None makes a new one.
        delta: δ; 0 for pure DP alone. Votes are always pure.
        distance: By size: the distances of interest, a number or (low, high), in data units.
        distortion: By size: α of a Johnson-Lindenstrauss target |estimate − D| ≤ α·D for the squared distance D.
        failure_probability: β, how often that may fail, over all pairs.
        settings: What else the protocol has, as for `al.Protocol`: relation, unit, items, vocabulary, record, record_pairs, total_share; by size
            also contribution, or radius, resolution, on_grid, changed_entries and value_range.
    """
    for name in settings.keys() - _SETTINGS:
        raise ParameterError(
            f"plan() chooses the transform and the noise; remove {name}="
            if name in _CHOSEN
            else f"plan() has no argument {short_repr(name)}; see help(al.plan)"
        )
    recipe = checked_record(settings.get("record"), settings.get("record_pairs", ()))
    contribution = settings.get("contribution")
    of_size = {
        "distance": distance,
        "contribution": None if contribution == VOTES else contribution,
        "delta": exact_number("delta", delta) or None,
        "distortion": distortion,
        "failure_probability": failure_probability,
        **{name: settings.get(name) for name in ("radius", "value_range", "changed_entries", "on_grid")},
    }
    for_margins = {
        "margins": margins,
        "item_groups": item_groups,
        "margin_share": exact_number("margin_share", margin_share) or None,
        "margin_contribution": margin_contribution,
        "item_groups_per_person": item_groups_per_person,
    }
    of_votes = {
        **for_margins,
        "record": recipe,
        "contribution": None if contribution != VOTES else contribution,
        "items_per_person": items_per_person,
        "concentration": concentration,
        "beyond_chance": None if beyond_chance is True else beyond_chance,
    }
    votes = _is_for_votes(by, people, of_size, of_votes)
    input_dim = record_input_dim(recipe, input_dim=input_dim, open_vocabulary=open_vocabulary)
    dimension = None if input_dim is None else checked_input_dim(input_dim)
    if votes:
        settings["contribution"] = VOTES
    is_numbered = dimension is not None and recipe is None and settings.get("vocabulary") is None
    if is_numbered and settings.get("contribution") is not None:
        settings["items"] = "int64"  # a table's items are the numbers of these coordinates
    flat = dict(settings)
    protocol = Protocol(
        SparseJL(input_dim=dimension, sketch_dim=1, seed="plan"),
        contribution_of(flat),
        epsilon=epsilon,
        delta=delta,
        **flat,
    )
    item_count, largest = checked_explain(explain, max_sketch_dim, dimension)
    shared: dict[str, Any] = {
        "input_dim": dimension,
        "protocol": protocol,
        "epsilon": protocol.epsilon,
        "delta": protocol.delta,
        "pairs": checked_pairs(parties, pairs),
        "max_sketch_dim": largest,
        "explain": item_count,
        "fields": settings,
    }
    seed = checked_seed(seed)
    if votes:
        known = people, items_per_person, concentration, for_margins
        return shape_plan(shape_situation(shared, *known, beyond_chance=beyond_chance), seed)
    if people is not None:
        people = integer("people", people, at_least=1, at_most=LARGEST_COUNT)
    distances = distances_of_interest(distance, people, protocol.contribution, dimension)
    target = checked_target(distortion, failure_probability)
    return size_plan(SizeSituation(**shared, people=people, distances=distances, target=target), seed)


def _is_for_votes(by: Any, people: Any, of_size: dict[str, Any], of_votes: dict[str, Any]) -> bool:
    """Whether it is a plan for votes, as asked for or by what else is given; refuses what the other kind has."""
    given = {name for name, value in of_size.items() if value is not None}
    if by is None:
        has_votes = any(value is not None for value in of_votes.values())
        by = "shape" if has_votes or (people is not None and not given) else "size"
    votes = one_of("by", by, ("size", "shape")) == "shape"
    kind = "votes, which are planned for by people" if votes else "counts and arrays"
    for name, value in (of_size if votes else of_votes).items():
        if value is not None:
            raise ParameterError(f"leave out {name}: the plan is for {kind}", name)
    return votes
