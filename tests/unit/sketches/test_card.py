"""The release card: facts that are those of the protocol, words that an officer can read, and nothing of the data."""

import json
import math
import re

import mpmath
import numpy as np
import pytest

import armslength as al
from armslength.errors import CorruptFileError
from armslength.files import canonical_json
from armslength.sketches.card import check_card, guarantee_in_words, officer_page, release_card, release_facts
from armslength.sketches.sketch_file import read_file
from exact_laws import pmf
from golden.write_files import protocols

PROTOCOLS = protocols()
LAPLACE = al.Protocol(
    al.SparseJL(input_dim=100, sketch_dim=8, sparsity=2, seed="card"),
    al.Counts(20, total_share="0.2"),
    epsilon="0.5",
    unit="one patient",
)
GAUSSIAN = al.Protocol(
    al.HadamardJL(input_dim=100, sketch_dim=8, seed="card"),
    al.Arrays(radius=3, value_range=(0, 9)),
    epsilon=1,
    delta="1e-6",
    noise="gaussian",
)


def test_facts_of_laplace_noise():
    facts = release_facts(LAPLACE, "rows")
    assert facts["protocol"] == LAPLACE.fingerprint
    assert (facts["unit"], facts["relation"]) == ("one patient", "add_remove")
    assert (facts["radius"], facts["epsilon"], facts["delta"], facts["totals_epsilon"]) == (
        "20",
        "0.5",
        "0",
        "0.1",
    )
    assert facts["calibration"] == {
        "rule": "laplace: scale >= sensitivity / epsilon",
        "epsilon": "0.4",
        "sensitivity": "40",
    }
    assert float.fromhex(facts["scale"]) == 100.0
    assert float.fromhex(facts["mechanism"]["totals_scale"]) == 200.0
    assert facts["bounds"]["contribution"] == 20


def test_facts_of_gaussian_noise():
    facts = release_facts(GAUSSIAN, "rows")
    assert facts["calibration"]["sensitivity_squared"] == str(9 * 8)
    assert (facts["epsilon"], facts["delta"]) == ("1", "0.000001")
    assert facts["bounds"]["value_range"] == ["0", "9"]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.fingerprint[:8])
def test_every_protocol_has_a_card_that_is_json_and_belongs_to_it_alone(protocol):
    card = release_card([(protocol, "rows")], in_clear=False, page=True)
    assert json.loads(canonical_json(card)) == card
    check_card(card, [(protocol, "rows")])
    assert all(words and "\n" not in words for words in card["releases"][0]["page"].values())
    for other in PROTOCOLS:
        if other != protocol:
            with pytest.raises(CorruptFileError, match="release card"):
                check_card(card, [(other, "rows")])


def test_one_changed_fact_is_refused():
    facts = release_facts(LAPLACE, "rows")
    inside = [(group, name) for group in ("mechanism", "calibration", "bounds") for name in facts[group]]
    for *groups, name in [*inside, *((name,) for name in facts)]:
        card = release_card([(LAPLACE, "rows")], in_clear=False)
        place = card["releases"][0]
        for group in groups:
            place = place[group]
        place[name] = "another"
        with pytest.raises(CorruptFileError, match="release card"):
            check_card(card, [(LAPLACE, "rows")])


def test_cards_that_are_none_are_refused():
    card = release_card([(LAPLACE, "rows")], in_clear=False)
    for other in (
        None,
        [],
        {},
        {**card, "releases": {}},
        {**card, "releases": []},
        {**card, "releases": card["releases"] * 2},
        {**card, "releases": [5]},
        {**card, "releases": [{}]},
        {**card, "in_clear": 0},
        {**card, "in_clear": True},
    ):
        with pytest.raises(CorruptFileError, match="release card"):
            check_card(other, [(LAPLACE, "rows")])


def test_facts_may_be_added_and_words_may_differ_but_no_fact_may_be_missing():
    card = release_card([(LAPLACE, "rows")], in_clear=False)
    card["releases"][0] |= {"words": "put better", "new fact": 5}
    check_card(card, [(LAPLACE, "rows")])
    for name in release_facts(LAPLACE, "rows"):
        release = {key: value for key, value in card["releases"][0].items() if key != name}
        with pytest.raises(CorruptFileError, match="release card"):
            check_card({**card, "releases": [release]}, [(LAPLACE, "rows")])


def test_data_in_the_clear_has_no_guarantee():
    card = release_card([(LAPLACE, "rows")], in_clear=True)
    assert card["releases"] == []
    assert card["words"].startswith("NOT PRIVATE")
    check_card(card, [(LAPLACE, "rows")])


def test_the_page_says_what_an_officer_asks():
    page = dict(officer_page(LAPLACE, "events"))
    assert "one patient" in page["Who is protected"]
    assert "at most 20" in page["Who is protected"]
    assert "1.65 times" in page["What anybody can learn at most"]  # e^0.5
    assert "δ" not in page["What anybody can learn at most"]
    assert "0.1 of ε" in page["What was released"]
    assert "at most 1." in page["What adds up"]
    assert LAPLACE.fingerprint in page["How to check this"]
    assert "the software enforces that" in page["What must be true for this to hold"]
    page = dict(officer_page(GAUSSIAN, "rows"))
    assert "δ = 0.000001" in page["What anybody can learn at most"]
    assert "δ adds up" in page["What adds up"]
    assert "clamped to 0 to 9" in page["What was released"]
    assert "the software cannot check it" in page["What must be true for this to hold"]
    fast = al.Protocol(
        al.FastJL(input_dim=16, sketch_dim=8, seed="card"), epsilon=1, delta="1e-6", noise_site="input"
    )
    assert "goes into the last step" in dict(officer_page(fast, "rows"))["How it is protected"]
    assert "before its last step" in guarantee_in_words(fast, "rows")
    assert (
        "of 3 numbers"
        in dict(officer_page(al.Protocol(al.Identity(input_dim=3), epsilon=1), "rows"))["What was released"]
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "is_weak"),
    [(10, 0, False), ("10.001", 0, True), (1, "0.001", False), (1, "0.0011", True), (1, "1e-6", False)],
)
def test_weak_promises_are_called_weak_in_the_paragraph_and_on_the_page(epsilon, delta, is_weak):
    noise = "gaussian" if delta else "laplace"
    protocol = al.Protocol(al.Identity(input_dim=3), epsilon=epsilon, delta=delta, noise=noise)
    for text in (
        guarantee_in_words(protocol, "rows"),
        dict(officer_page(protocol, "rows"))["What anybody can learn at most"],
    ):
        assert ("weak promise" in text) == is_weak


def test_a_delta_that_is_not_spent_is_no_weakness():
    assert "weak" not in guarantee_in_words(
        al.Protocol(al.Identity(input_dim=3), epsilon=1, delta="0.1", noise="laplace"), "rows"
    )


def test_a_card_does_not_depend_on_the_data(tmp_path):
    def card_of(counts):
        al.release(LAPLACE, counts, labels=["a", "b"], ledger=al.NO_LEDGER).save(tmp_path / "s.parquet")
        return read_file(tmp_path / "s.parquet", 10**9, {}).header.card

    first = card_of(np.zeros((2, 100), dtype=int))
    assert first == card_of(np.full((2, 100), 987_654))
    assert not re.search(
        "987|654", json.dumps(first).replace(LAPLACE.fingerprint, "").replace(LAPLACE.space, "")
    )


def test_a_card_names_edges_and_categories():
    record = {
        "age": [18, 40],
        "sex": ["F", "M"],
        "ward": "category",
        "seen": "month",
        "code": [f"c{number}" for number in range(1000)],
    }
    protocol = al.Protocol(al.SparseJL(sketch_dim=8, seed="card"), al.Votes(record=record), epsilon=1)
    page = dict(officer_page(protocol, "events"))
    contents = page["What was released"]
    for words in ("age (edges 18, 40)", "sex (F, M, or other)", "ward (as it is)", "seen (by month)"):
        assert words in contents
    assert "c19 and 980 more, or other" in contents


NUMBER = r"(\d[\d,.]*\d|\d)"


def probabilities(protocol, moved):
    """Of every integer that a release of one number can be: under an input, and under one that differs by `moved`."""
    reach = int(40 * protocol.law.scale) + 3
    n = np.arange(-reach, reach + moved)
    return pmf(protocol.law, n), pmf(protocol.law, n - moved)


def excess(p, q, factor):
    """The largest P(S) − factor·P'(S) over all sets S of results."""
    return float(np.maximum(p - factor * q, 0).sum())


def beyond(p, q, factor):
    """The probability of results that are more than `factor` times as likely or as unlikely in the other case."""
    return float(p[(p > factor * q) | (q > factor * p)].sum())


def worst(epsilon, delta):
    """(ε, δ)-private laws of four results, the first two of them as often beyond 2e^ε as can be."""
    rare = np.array([2 * delta, delta / math.exp(epsilon) * (1 - 1e-9)])
    p, q = np.append(rare, [0.5, 0.5 - rare.sum()]), np.append(rare[::-1], [0.5, 0.5 - rare.sum()])
    assert max(excess(p, q, math.exp(epsilon)), excess(q, p, math.exp(epsilon))) <= delta * (1 + 1e-6)
    return p, q


def rare_changes(text):
    """(factor, multiple of δ) of every statement that changes beyond a factor are that improbable."""
    found = re.findall(rf"{NUMBER} times(?:\D|\d\.\d)*?a probability of at most (\d*)δ", text)
    return [(float(factor.replace(",", "")), int(times or 1)) for factor, times in found]


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "3", "5"])
@pytest.mark.parametrize("delta", ["0.001", "0.000001"])
@pytest.mark.parametrize("radius", [1, 3])
def test_what_the_card_says_of_delta_is_true_of_the_exact_noise(epsilon, delta, radius):
    protocol = al.Protocol(
        al.Identity(input_dim=1), al.Arrays(radius=radius), epsilon=epsilon, delta=delta, noise="gaussian"
    )
    exact, small = float(epsilon), float(delta)
    text = dict(officer_page(protocol, "rows"))["What anybody can learn at most"]
    p, q = probabilities(protocol, radius)
    ((factor, times),) = rare_changes(text)
    assert beyond(p, q, factor) <= times * small
    for first, second in ((p, q), (q, p)):
        assert excess(first, second, math.exp(exact)) <= small * (1 + 1e-9)
    assert factor >= 2 * math.exp(exact)
    assert (times - 1) * small < beyond(*worst(exact, small), 2 * math.exp(exact)) <= times * small
    # One unit's data for another's: two steps.
    (more,) = re.findall(rf"ε counts twice, and δ {NUMBER} times", text)
    p, q = probabilities(protocol, 2 * radius)
    changed = excess(p, q, math.exp(2 * exact))
    assert changed <= float(more) * small
    assert changed > 0.9 * small or exact > 1


def test_delta_is_not_the_probability_of_a_larger_change():
    protocol = al.Protocol(
        al.Identity(input_dim=1), al.Arrays(radius=9), epsilon=1, delta="1e-6", noise="gaussian"
    )
    p, q = probabilities(protocol, 9)
    old = "no result becomes more than 2.72 times as likely or as unlikely, except with a probability of at most δ = 0.000001"
    ((factor, times),) = rare_changes(old)
    assert beyond(p, q, factor) > 20 * times * 1e-6


@pytest.mark.parametrize("epsilon", ["1e-9", "0.1", "0.5", "1", "2", "5", "8", "10", "20"])
def test_the_largest_factor_is_rounded_up(epsilon):
    protocol = al.Protocol(al.Identity(input_dim=1), epsilon=epsilon)
    text = dict(officer_page(protocol, "rows"))["What anybody can learn at most"]
    (factor,) = re.findall(rf"more than {NUMBER} times", text)
    with mpmath.workdps(30):
        assert mpmath.exp(epsilon) <= float(factor.replace(",", "")) <= 1.011 * mpmath.exp(epsilon)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_noise_is_rounded_down_and_what_moves_is_rounded_up(relation):
    groups = {f"item {number}": f"group {number}" for number in range(300)}
    protocol = al.Protocol(
        al.SparseJL(sketch_dim=64, seed="v"),
        al.Votes(total_share="0.1", item_groups=al.ItemGroups(groups, share="0.3", limit=290)),
        epsilon="0.7",
        relation=relation,
    )
    words, vote = guarantee_in_words(protocol, "events"), 2**20
    moved = float(re.search(r"all margins together by at most ([\d.]+) people", words)[1])
    assert protocol.margin_sensitivity / vote <= moved < protocol.margin_sensitivity / vote + 0.011
    laws = protocol.law, protocol.spread_law, protocol.total_law, protocol.margin_law
    scales = [float(text) for text in re.findall(r"scale ([\d.]+) votes", words)]
    assert len(scales) == len(laws)
    for stated, law in zip(scales, laws, strict=True):
        assert 0.99 * law.scale / vote < stated <= law.scale / vote
