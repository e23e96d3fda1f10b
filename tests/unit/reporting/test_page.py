"""The file: whole, closed to the network, the same for the same sketches, and safe against its labels."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pytest

import armslength as al
from armslength.answers.pairs import QUESTION_TEXTS
from armslength.reporting.findings import findings_of
from armslength.reporting.page import report
from armslength.sketches.noises import Noises
from armslength.sketches.sketches import Sketches
from flat_protocol import flat_protocol
from report_parties import CODES, hospital_counts, hospitals, protocol_of, sketches_of

ODD = [
    "<script>alert(1)</script>",
    "</bdi><img src=x onerror=alert(1)>",
    "مستشفى الشمال",
    "東京医療センター 🏥",
    "\"quoted\" & 'single' {{style}}",
    "x" * 300,
]


class Tags(HTMLParser):
    """All start tags with their attributes, and whether tags are closed in order."""

    EMPTY = ("meta", "link", "input", "br", "!doctype")

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, *names):
        return [attributes for tag, attributes in self.found if tag in names]


def written(sketches, tmp_path, **options):
    path = tmp_path / "report.html"
    report(sketches, path, **options)
    return path.read_text(encoding="utf-8")


def test_the_same_sketches_give_the_same_bytes(tmp_path):
    assert written(hospitals(6), tmp_path) == written(hospitals(6), tmp_path)


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_the_page_is_well_formed_and_has_one_heading(count, tmp_path):
    tags = Tags(written(hospitals(count), tmp_path))
    assert tags.open == []
    assert len(tags.all("h1")) == 1
    assert tags.all("html")[0]["lang"] == "en"
    identifiers = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    targets = [attributes["href"] for attributes in tags.all("a")]
    assert {target.removeprefix("#") for target in targets} <= set(identifiers)


def test_every_drawing_has_a_name_or_is_decoration(tmp_path):
    for attributes in Tags(written(hospitals(9), tmp_path)).all("svg", "canvas"):
        named = attributes.get("aria-label") or attributes.get("aria-hidden") == "true"
        assert named or attributes == {"width": "26", "height": "16"}  # inside of a mark that is hidden


def test_labels_and_titles_are_text(tmp_path):
    sketches = sketches_of(hospital_counts(6, 2), ODD, protocol_of())
    page = written(sketches, tmp_path, title="<u>Title</u> & {{script}}")
    tags = Tags(page)
    assert tags.open == []
    assert len(tags.all("script")) == 2
    assert tags.all("img", "u") == []
    assert "<title>&lt;u&gt;Title&lt;/u&gt; &amp; {{script}}</title>" in page
    assert "alert(1)</script>" not in page
    assert not [name for _, attributes in tags.found for name in attributes if name.startswith("on")]


def test_the_policy_knows_its_own_script_and_style_alone(tmp_path):
    page = written(hospitals(3), tmp_path)
    policy = Tags(page).all("meta")[1]["content"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        text = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert 'style="' not in page


def test_nothing_leads_outside(tmp_path):
    page = written(hospitals(5), tmp_path)
    assert set(re.findall(r"https?://[^\s'\"<)]*", page)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, not an address
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|localStorage", page)


def test_one_party_has_one_clear_line(tmp_path):
    page = written(hospitals(1), tmp_path)
    assert "nothing to compare it with" in page
    assert 'id="heat"' not in page
    assert 'id="cards"' in page


def test_rows_of_the_same_name_are_numbered(tmp_path):
    first, second = hospitals(2, labels=["a", "b"]), hospitals(2, labels=["a", "c"])
    page = written(al.concat([first, second]), tmp_path)
    assert "<bdi>a (row 1)</bdi>" in page
    assert "<bdi>a (row 3)</bdi>" in page
    assert "<bdi>b</bdi>" in page


def test_clear_sketches_are_shouted(tmp_path):
    clear = al.sketch_in_clear(protocol_of(), np.ones((2, CODES), dtype=np.int64), labels=["a", "b"])
    page = written(clear, tmp_path)
    assert '<p class="shout">NOT PRIVATE</p>' in page
    assert "No privacy is promised" in page


def test_equal_and_negative_estimates_have_a_page(tmp_path):
    protocol = protocol_of(0.01)
    values = np.zeros((4, 256), dtype=np.int64)
    page = written(
        Sketches(values, list("abcd"), Noises.fresh(bytes(range(64)), protocol, "rows"), [protocol]), tmp_path
    )
    assert "6 inconclusive" in page
    assert "There is no map" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": float("nan")}, "level must"),
        ({"title": "two\nlines"}, "title must be one printable line"),
        ({"about": "people"}, "number of people"),
        ({"about": "shape"}, "about must"),
        ({"about": "counts", "alike": float("nan")}, "alike must"),
    ],
)
def test_bad_arguments_write_nothing(options, message, tmp_path):
    with pytest.raises(al.ParameterError, match=message):
        report(hospitals(3), tmp_path / "report.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_too_many_rows_and_none_are_refused(tmp_path):
    sketches = hospitals(2)
    with pytest.raises(al.ParameterError, match="1 to 1000 rows to report, got 1001"):
        report(sketches.rows([0] * 1001), tmp_path / "report.html")
    with pytest.raises(al.ParameterError, match="got 0"):
        report(sketches.rows([]), tmp_path / "report.html")
    with pytest.raises(al.ParameterError, match=r"must be al\.Sketches, got int"):
        report(1, tmp_path / "report.html")


def test_the_strongest_question_is_the_default(tmp_path):
    events = pa.table({"who": [str(person) for person in range(900)], "what": ["x", "y", "z"] * 300})
    settings = {"epsilon": 5, "unit": "one person", "total_share": "0.2"}
    for contribution, about in (("vote", "populations"), (1, "people")):
        protocol = flat_protocol(al.SparseJL(sketch_dim=64, seed="q"), contribution=contribution, **settings)
        rows = [
            al.release(protocol, events, person="who", item="what", label=label, ledger=al.NO_LEDGER)
            for label in "abc"
        ]
        assert QUESTION_TEXTS[about] in written(al.concat(rows), tmp_path)
        assert QUESTION_TEXTS["counts"] in written(al.concat(rows), tmp_path, about="counts")
    sums = al.concat([*rows, rows[0] + rows[1]])  # chance is not independent there
    assert QUESTION_TEXTS["people"] in written(sums, tmp_path)


def test_a_party_without_a_profile_is_named_once_and_leaves_the_others_alone(tmp_path):
    protocol = protocol_of(10, total_share="0.2")
    counts = hospital_counts(4, 2)
    counts[3] = 0
    page = written(
        al.release(protocol, counts, labels=["a", "b", "c", "empty"], ledger=al.NO_LEDGER), tmp_path
    )
    assert page.count("<bdi>empty</bdi>") == 1
    assert '"labels":["a","b","c"]' in page


def test_the_protocol_and_its_promise_are_on_the_first_screen(tmp_path):
    sketches = hospitals(3)
    top = written(sketches, tmp_path).split("<main")[0]
    assert sketches.protocol.fingerprint[:4] in top
    assert "ε = 1" in top
    both = al.concat([hospitals(2, labels=["a", "b"]), hospitals(2, epsilon=3, labels=["c", "d"])])
    assert "ε = 1 to 3" in written(both, tmp_path).split("<main")[0]


@pytest.mark.parametrize("about", ["counts", "people"])
def test_retired_words_are_gone(about, tmp_path):
    counts = hospital_counts(12, 3)
    sketches = al.release(
        protocol_of(2, total_share="0.2"), counts, labels=list("abcdefghijkl"), ledger=al.NO_LEDGER
    )
    page = written(sketches, tmp_path, about=about)
    text = re.sub(r'"(value|lower|upper|distance)":"[^"]*"|<style>.*?</style>', "", page, flags=re.DOTALL)
    assert not re.findall(
        r"\b(?:un)?resolved|told apart|too uncertain|\bmix(?:es)?\b|\bshapes?\b|\bsurely\b", text
    )


def test_a_banner_is_on_top_of_the_page(tmp_path):
    page = written(hospitals(2), tmp_path, banner="REHEARSAL <b>")
    assert '<div class="rehearsal">REHEARSAL &lt;b&gt;</div>' in page


def test_what_keeps_pairs_open_is_noise_or_chance():
    """400 people over 50 items: with a small ε noise hides the rest, with a large one chance; of the counts, only noise."""
    people, items = [str(person) for person in range(400)], np.random.default_rng(3)
    shares = {}
    for epsilon, about in (("0.5", "populations"), ("1000", "populations"), ("0.5", "people")):
        protocol = al.Protocol(
            al.SparseJL(sketch_dim=256, seed="q"),
            al.Votes(total_share="0.2"),
            epsilon=epsilon,
            unit="one person",
        )
        tables = [pa.table({"who": people, "what": items.integers(0, 50, 400).astype(str)}) for _ in "abc"]
        rows = [
            al.release(protocol, table, person="who", item="what", label=label, ledger=al.NO_LEDGER)
            for table, label in zip(tables, "abc", strict=True)
        ]
        shares[epsilon, about] = findings_of(al.concat(rows), level=0.95, about=about).remedy.noise_share
    assert shares["0.5", "populations"] > 0.5
    assert shares["1000", "populations"] < 0.5
    assert shares["0.5", "people"] > 0.95
