"""Nine made-up sites, of which four are alike and five are what studies really have: what is said of one must not depend on another.

People are drawn with public seeds, and noise is real. Answers are at the level 1 − 1e-6, so that false verdicts are as rare. With 20,000 people
the similarity of parties that are alike is known to 0.003, and that of the others is below 0.6. Shares of item groups have Laplace noise, of
scale 40 people: an interval reaches about 20 scales. The one difference that must be found, of 60 points in 2,500 people, is 37 scales. In the
typical party two sites move shares by at most 1.3 points, which is 6 scales of what is compared with it, of 20,000 people: a false reason takes
noise beyond 14 of them, and 7 item groups on 2 sides, so e⁻¹⁴, which is 1e-6.
"""

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.answers.explain import UNEXPLAINED
from unit.cli.commands import run

LEVEL = 1 - 1e-6
SURELY = ("--level", repr(LEVEL))
ALIKE = ("alder", "birch", "cedar", "doria")
TINY, LOWER, TWICE, INJURIES, RECODED = "tiny", "elm", "fjord", "harbour", "lakeside"
SITES = (*ALIKE, LOWER, TWICE, INJURIES, RECODED, TINY)
LARGE = SITES[:-1]
PEOPLE = dict.fromkeys(SITES, 20_000) | {TINY: 60, LOWER: 1600, INJURIES: 2500}
ITEMS, CODES = 4, 12
CHAPTERS = dict(
    zip("ABCDEF", ["Births", "Circulatory", "Endocrine", "Injuries", "Mental", "Skin"], strict=True)
)
USUAL = np.array([0.1, 0.3, 0.2, 0.1, 0.2, 0.1])
OTHER = np.array([0.04, 0.04, 0.04, 0.8, 0.04, 0.04])  # nearly everybody has an injury


def protocol(seed="nine sites", chapters=CHAPTERS):
    groups = pa.table({"prefix": list(chapters), "group": list(chapters.values())})
    return al.Protocol(
        al.SparseJL(sketch_dim=512, seed=seed),
        al.Votes(total_share="0.1", item_groups=al.ItemGroups(groups, share="0.1", limit=ITEMS)),
        epsilon=1,
        unit="one patient",
    )


def events(name, seed, people=0):
    """Everybody has four diagnoses of chapters drawn at random, the first codes of a chapter far more often."""
    rng = np.random.default_rng([26, seed])
    count = people or PEOPLE[name]
    person = np.repeat(np.arange(count), ITEMS)
    chapter = rng.choice(len(USUAL), len(person), p=OTHER if name == INJURIES else USUAL)
    code = rng.geometric(0.4, len(person)).clip(max=CODES) - 1
    codes = [
        f"{letter}{number + (50 if name == RECODED else 0)}" for letter in CHAPTERS for number in range(CODES)
    ]
    if name == LOWER:
        codes = [code.lower() for code in codes]
    people = [f"CE{number:06d}" for number in range(count)]
    places, which = chapter * CODES + code, person
    if name == TWICE:
        people += [f"CE-{number:06d}" for number in range(count)]
        places, which = np.tile(places, 2), np.concatenate([person, person + count])
    columns = {"person": np.array(people)[which], "item": np.array(codes)[places]}
    return pa.table(columns | {"site": np.full(len(which), name)})


def released(name, used, people=0):
    known = {"person": "person", "item": "item", "group": "site", "public_groups": [name]}
    return al.release(used, events(name, SITES.index(name), people), ledger=al.NO_LEDGER, **known)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file for each site."""
    top = tmp_path_factory.mktemp("nine") / "study"
    top.mkdir()
    for name in SITES:
        released(name, protocol()).save(top / f"{name}.parquet")
    return top


@pytest.fixture(scope="module")
def sites(folder):
    return al.load(folder)


@pytest.fixture(scope="module")
def large(sites):
    return sites[list(LARGE)]


def test_a_tiny_site_is_named_once_and_changes_nothing_that_is_said_of_the_others(sites, large):
    for ask in (al.compare, al.outliers, al.nearest):
        found, alone = ask(sites, level=LEVEL), ask(large, level=LEVEL)
        assert found.note.count(TINY) == 1
        assert TINY not in alone.note
        assert found.to_arrow().equals(alone.to_arrow())  # to the last digit
    groups, alone = al.cluster(sites, level=LEVEL), al.cluster(large, level=LEVEL)
    assert groups.note.count(TINY) == 1
    assert groups.labels == alone.labels == tuple(sorted(LARGE))
    assert groups.groups() == alone.groups()
    for name in (RECODED, INJURIES):
        found, alone = (al.explain(rows, name, level=LEVEL) for rows in (sites, large))
        assert found.note.count(TINY) == 1
        assert found.to_arrow().equals(alone.to_arrow())
        assert found.similarity == alone.similarity


def test_a_site_that_is_too_small_is_inconclusive_with_everybody(sites):
    found = al.compare(sites[[TINY]], sites[list(LARGE)], about="populations", level=LEVEL)
    assert set(found.to_arrow()["verdict"].to_pylist()) == {"inconclusive"}


def test_a_tiny_site_is_there_if_it_is_kept():
    """With 80 people and half of ε for their number: there surely are some, and in so long a sketch noise hides every profile."""
    used = al.Protocol(
        al.SparseJL(sketch_dim=4096, seed="kept"), al.Votes("0.5"), epsilon=1, unit="one patient"
    )
    rows = al.concat([released(name, used, people=80 if name == TINY else 5000) for name in (*ALIKE, TINY)])
    for ask in (al.compare, al.outliers, al.nearest, al.cluster):
        found, kept = (str(ask(rows, keep=keep).to_arrow().to_pylist()) for keep in (False, True))
        assert TINY not in found
        assert TINY in kept


def test_no_group_has_two_parties_that_differ(sites):
    for level in (LEVEL, 0.95, 0.5):
        rows = al.compare(sites, level=level).to_arrow().to_pylist()
        differ = {frozenset((row["left"], row["right"])) for row in rows if row["verdict"] == "differ"}
        groups = al.cluster(sites, level=level).groups()
        pairs = {frozenset(pair) for group in groups for pair in itertools.combinations(group, 2)}
        assert not pairs & differ
    (group,) = [group for group in al.cluster(sites, level=LEVEL).groups() if ALIKE[0] in group]
    assert {*ALIKE, TWICE} <= set(group)  # counting everybody twice changes no profile
    assert RECODED not in group


def test_other_codes_in_the_same_chapters_are_no_difference_of_chapters(sites):
    found = al.outliers(sites, level=LEVEL)
    row = found.labels.index(RECODED)
    assert found.verdict[row] == "differ"
    assert UNEXPLAINED in found.reasons[row]
    assert "points" not in found.reasons[row]
    assert not al.explain(sites, RECODED, level=LEVEL).found
    assert not al.explain(sites, ALIKE[0], RECODED, level=LEVEL).found
    nearest = al.nearest(sites, count=4, level=LEVEL)
    for query, names in zip(nearest.queries, nearest.labels, strict=True):
        if query in ALIKE:
            assert RECODED not in names


def test_reasons_are_against_the_typical_party_which_one_odd_site_does_not_move(sites):
    explanation = al.explain(sites, INJURIES, level=LEVEL)
    assert explanation.labels[0] == "the typical party"
    verdicts = dict(zip(explanation.item_groups, explanation.verdict, strict=True))
    assert verdicts["Injuries"] == "more"
    found = al.outliers(sites, level=LEVEL)
    reasons = dict(zip(found.labels, found.reasons, strict=True))
    assert all("Injuries" not in reasons[name] for name in (*ALIKE, TWICE, RECODED))


@pytest.mark.parametrize(
    ("odd", "is_left_out"),
    [(protocol(seed="another study"), True), (protocol(chapters={"A": "All A", "B": "All B"}), False)],
    ids=["another seed", "other item groups"],
)
def test_other_settings_cost_only_the_answers_about_their_party(folder, odd, is_left_out, tmp_path):
    name = ALIKE[3]
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    released(name, odd).save(tmp_path / f"{name}.parquet")
    for command in (("compare",), ("outliers",), ("cluster",), ("explain", INJURIES)):
        done = run(command[0], tmp_path, *command[1:], *SURELY)
        assert done.exit_code == 0, done.output
        named = [line for line in done.stderr.splitlines() if f"{name}.parquet" in line]
        assert len(named) == 1
        assert ("left out" in named[0]) == is_left_out
    assert "Injuries" in run("explain", tmp_path, INJURIES, *SURELY).stdout
    assert run("explain", tmp_path, name, *SURELY).exit_code != 0
    others = "--exclude", name, "--format", "json", *SURELY
    assert run("compare", tmp_path, *others).stdout == run("compare", folder, *others).stdout
    found = json.loads(run("outliers", tmp_path, "--format", "json", *SURELY).stdout)
    assert UNEXPLAINED in next(row["reasons"] for row in found if row["party"] == RECODED)
