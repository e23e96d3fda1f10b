"""The question of an answer: the strongest that the releases allow, or the one that was asked, or a refusal."""

import numpy as np
import pytest

import armslength as al
from armslength.estimates.questions import QUESTIONS, question
from flat_protocol import flat_protocol
from report_parties import with_margins

TRANSFORM = al.SparseJL(input_dim=40, sketch_dim=64, seed="question")
LABELS = ["a", "b", "c", "d"]


def rows(people=900, **fields):
    data = (
        np.random.default_rng(1).multinomial(people, np.full(40, 1 / 40), 4)
        if people
        else np.zeros((4, 40), int)
    )
    return al.release(flat_protocol(TRANSFORM, epsilon=5, **fields), data, labels=LABELS, ledger=al.NO_LEDGER)


WITH_FEW = with_margins([[0.2, 0.2, 0.5]] * 5, [900] * 4 + [3], labels=[*LABELS, "few"])
SKETCHES = {
    "votes": WITH_FEW[:4],
    "totals": rows(total_share="0.3"),
    "no people": rows(people=0, total_share="0.3"),
    "arrays": rows(),
}
SKETCHES["sum of votes"] = al.concat([SKETCHES["votes"][:2], SKETCHES["votes"]["c"] + SKETCHES["votes"]["d"]])
SKETCHES["twice a vote"] = SKETCHES["votes"] * 2
SKETCHES["shared votes"] = al.concat([SKETCHES["votes"], SKETCHES["votes"]["a"] + SKETCHES["votes"]["b"]])
STRONGEST = {
    "votes": "populations",
    "totals": "people",
    "no people": "counts",
    "arrays": "counts",
    "sum of votes": "populations",
    "twice a vote": "people",
    "shared votes": "people",
}


@pytest.mark.parametrize("name", STRONGEST)
def test_without_a_question_the_strongest_is_asked(name):
    assert question(None, SKETCHES[name]) == STRONGEST[name]


def test_what_two_sides_share_counts_too():
    rows = SKETCHES["votes"]
    assert question(None, rows[:2], rows[2:]) == "populations"
    assert question(None, rows[:2], rows[1:]) == "people"
    assert question(None, rows, SKETCHES["totals"]) == "people"
    assert question(None, rows, SKETCHES["arrays"]) == "counts"


def test_too_few_people_change_no_question():
    rows, few = WITH_FEW[:4], WITH_FEW["few"]
    assert question(None, rows, few) == question(None, WITH_FEW) == "populations"
    assert question(None, few) == "counts"
    assert question(None, SKETCHES["arrays"], of_people=True) == "people"
    assert question("counts", rows, few, of_people=True) == "counts"


def of_items(rows, *sides, **known):
    items = ["A0", "S1"] if rows.transform.input_dim is None else [0, 1]
    return al.explain(rows, *sides, items=items, **known)


ESTIMATES = {"distances": al.distances, "similarities": al.similarities}
ANSWERS = {
    "compare": al.compare,
    "nearest": al.nearest,
    "outliers": al.outliers,
    "cluster": al.cluster,
    "items": lambda rows, **known: of_items(rows, rows.labels[0], rows.labels[1], **known),
    "items and the typical party": lambda rows, **known: of_items(rows, rows.labels[0], **known),
    "drift": lambda rows, **known: al.drift(rows, rows, **known),
}


@pytest.mark.parametrize("answer", [*ANSWERS, *ESTIMATES])
def test_a_question_that_cannot_be_answered_is_refused_at_once(answer):
    for name, about in (
        ("arrays", "people"),
        ("arrays", "populations"),
        ("totals", "populations"),
        ("twice a vote", "populations"),
        ("votes", "shape"),
        ("votes", 1),
        ("votes", ""),
    ):
        with pytest.raises(al.ParameterError) as caught:
            (ANSWERS | ESTIMATES)[answer](SKETCHES[name], about=about)
        assert caught.value.arguments == ("about",), (name, about)


@pytest.mark.parametrize("name", ["votes", "sum of votes", "totals", "twice a vote", "arrays"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_says_what_was_asked(answer, name):
    sketches = SKETCHES[name]
    # drift of rows and themselves: both sides share their releases
    strongest = question(None, sketches, sketches) if answer == "drift" else STRONGEST[name]
    for about in (None, *QUESTIONS[QUESTIONS.index(strongest) :]):
        found = ANSWERS[answer](sketches, about=about)
        assert found.about == (about or strongest)
        assert found.to_arrow().schema.metadata[b"about"].decode() == found.about


@pytest.mark.parametrize("answer", [*ANSWERS, *ESTIMATES])
def test_the_question_is_resolved_once(answer, monkeypatch):
    """Whatever is asked after that is asked for the question that was found."""
    asked = []

    def noted(about, *sides, **known):
        asked.append(about)
        return question(about, *sides, **known)

    for module in ("compare", "nearest", "outliers", "cluster", "drift", "explain"):
        monkeypatch.setattr(f"armslength.answers.{module}.question", noted)
    monkeypatch.setattr("armslength.estimates.questions.question", noted)
    (ANSWERS | ESTIMATES)[answer](SKETCHES["votes"]).to_arrow()
    assert asked.count(None) == 1


def test_item_groups_are_about_people_also_where_one_side_has_hardly_any():
    for sides in (("a", "few"), ("few", "a"), ("few",)):
        with pytest.raises(al.NotResolvableError, match="few"):
            al.explain(WITH_FEW, *sides)
    assert al.explain(WITH_FEW, "a", "b").about == "populations"
