"""Every hypothesis of theorem 1 stands in every text that states the guarantee, with its numbers."""

import html
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import armslength as al
from armslength.releasing.stream import SketchStream
from armslength.reporting.promise import cards
from armslength.sketches import card
from armslength.sketches.card import guarantee_in_words, hypotheses, officer_page, protection_in_words
from armslength.sketches.noises import SOURCES, UNKNOWN
from flat_protocol import flat_protocol

ROOT = Path(__file__).parents[3]
GRIDS = {
    "on": {"on_grid": True},
    "changed_entries": {"on_grid": False, "changed_entries": 7},
    "one row": {"on_grid": False},
}
MARGINS = {"margins": {"a": "vowels"}, "margin_share": "0.2", "margin_contribution": 2}
CHANGES = {"add_remove": "adding or removing one patient", "replace": "replacing one patient"}


def kinds():
    """(protocol, source) of every kind that can be made."""
    bounds = {
        "votes": {"contribution": "vote"},
        "margins": {"contribution": "vote", **MARGINS},
        "amounts": {"contribution": 6},
        "radius": {"radius": "2.5"},
    }
    for grid, bound, relation, noise, site, share, source in itertools.product(
        GRIDS,
        bounds,
        CHANGES,
        ("laplace", "gaussian"),
        ("output", "input"),
        (0, "0.1"),
        (*SOURCES, UNKNOWN),
    ):
        if site == "input" and (noise == "laplace" or source in ("events", "stream")):
            continue
        if source == "events" and bound == "radius":
            continue
        if bound != "radius" and noise == "gaussian":
            continue
        votes = bounds[bound].get("contribution") == "vote"
        if votes and (grid != "on" or source in ("rows", "stream")):
            continue
        if bound == "margins" and not share:
            continue
        transform = (
            al.Identity(input_dim=16)
            if site == "output"
            else al.FastJL(input_dim=16, sketch_dim=4, seed="kinds")
        )
        yield (
            flat_protocol(
                transform,
                epsilon=1,
                delta="1e-6" if noise == "gaussian" else 0,
                noise=noise,
                resolution=1 if votes else 0.5,
                relation=relation,
                unit="one patient",
                noise_site=site,
                total_share=share,
                **GRIDS[grid],
                **bounds[bound],
            ),
            source,
        )


def expected(protocol, source):
    """By hypothesis, what must be said of it: written down here a second time, so that nothing can be dropped unnoticed."""
    change, radius = CHANGES[protocol.relation], f"{float(protocol.radius):g}"
    distance = f"moves the data by at most {radius} in l1 norm over all rows"
    promised = ["The party promises that", f"{change} {distance}", "the software cannot check it"]
    counted = [f"At most {protocol.contribution} of each person's events"]
    if protocol.votes:
        counted = [
            "Each person has one vote, split evenly over all different items they have, in one group, which a secret key chooses"
        ]
        source = "events"  # nothing else can be released
    if protocol.margins:
        counted.append("up to 2 item groups of each person count in full")
    enforced = [*counted, "the software enforces that", distance]
    if protocol.margins:
        votes = 2 * (2 if protocol.relation == "replace" else 1)  # of two item groups, with (other)
        enforced.append(f"all margins together by at most {votes} people.")
    if source == "unknown" and protocol.contribution:
        promised += [words[1:] for words in counted]
    if source == "events" and protocol.votes:
        grid = ["rounded down to multiples of 2^-20"]
    elif source == "events":
        grid = ["counts a multiple of 0.5", "left out" if protocol.on_grid else "rounded down"]
    elif source == "stream":
        grid = ["Every update is a multiple of 0.5"]
    elif protocol.on_grid:
        grid = ["Every value is a multiple of 0.5"]
    elif protocol.changed_entries:
        grid = [f"{change} changes at most 7 entries over all rows", "rounded down to multiples of 0.5"]
    else:
        grid = ["Any entry may change", "one row only", "rounded down to multiples of 0.5"]
    return {
        "labels": ["public", "not depend on the data"],
        "radius": enforced if source == "events" else promised,
        "grid": grid,
        "settings": ["all settings and the public matrix were fixed without looking at the data"],
        "random bits": ["the operating system's generator", "AES-256"],
    }


def check(protocol, source):
    known = expected(protocol, source)
    paragraph = guarantee_in_words(protocol, source)
    assert all(words in paragraph for said in known.values() for words in said)
    page = " ".join(words for _, words in officer_page(protocol, source))
    assert all(words in page for said in known.values() for words in said)
    assert source == "events" or protocol.votes or "enforces that" not in paragraph + page
    assert protocol.margins or "margins" not in paragraph + page
    assert protocol.votes or "vote" not in paragraph + page
    reach = known["radius"] + (known["grid"] if source != "events" and not protocol.votes else [])
    assert all(words in protection_in_words(protocol, source) for words in reach)


def test_every_hypothesis_of_every_kind_of_release_is_said():
    made = list(kinds())
    assert len(made) > 100
    for protocol, source in made:
        check(protocol, source)


@pytest.mark.parametrize("dropped", range(5))
def test_a_hypothesis_that_is_left_out_is_noticed(dropped, monkeypatch):
    def fewer(*release):
        listed = hypotheses(*release)
        del listed[list(listed)[dropped]]
        return listed

    monkeypatch.setattr(card, "hypotheses", fewer)
    for protocol, source in kinds():
        with pytest.raises(AssertionError):
            check(protocol, source)


def test_the_list_is_that_of_the_theorem():
    page = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    theorem = page[page.index("**Theorem 1.**") : page.index("Then for every set of outputs")]
    found = re.findall(r"^\* \*\*H(\d), ([a-z ]+):\*\* ", theorem, re.MULTILINE)
    protocol = al.Protocol(al.Identity(input_dim=4), al.Counts(2), epsilon=1)
    for source in (*SOURCES, UNKNOWN):
        names = hypotheses(protocol, source)
        assert [(str(number), name) for number, name in enumerate(names, 1)] == found


def test_a_report_says_them_too():
    protocol = al.Protocol(
        al.Identity(input_dim=4), al.Arrays(on_grid=False, changed_entries=3), epsilon=1, unit="one patient"
    )
    said = html.unescape(cards(al.release(protocol, np.zeros((2, 4)), ledger=al.NO_LEDGER)))
    assert all(words in said for words in hypotheses(protocol, "rows").values())


@pytest.mark.parametrize(
    "text",
    [
        al.Protocol.__doc__,
        al.release.__doc__,
        SketchStream.__doc__,
        (ROOT / "SECURITY.md").read_text(encoding="utf-8"),
    ],
    ids=["Protocol", "release", "SketchStream", "SECURITY"],
)
def test_docstrings_and_the_threat_model_name_every_hypothesis(text):
    said = " ".join(text.split())
    for words in ("public", "radius", "changed_entries", "looking at", "andom bits are", "promise"):
        assert words in said, words


def test_why_touched_must_be_said():
    """Two inputs within the radius that break the promise of `changed_entries`: the integers move a thousand times as far as planned for."""
    protocol = al.Protocol(
        al.Identity(input_dim=1000), al.Arrays(on_grid=False, changed_entries=1, radius=1), epsilon=1
    )
    x, other = np.full((1, 1000), 1 - 0.0005), np.ones((1, 1000))
    assert np.abs(x - other).sum() == pytest.approx(0.5)
    moved = al.sketch_in_clear(protocol, other).values - al.sketch_in_clear(protocol, x).values
    assert np.abs(moved).sum() == 1000
    assert protocol.grid_radius == 1
    assert "changes at most 1 entry over all rows" in guarantee_in_words(protocol, "rows")
