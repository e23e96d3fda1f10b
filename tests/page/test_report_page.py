"""The report in a browser: it draws, answers to pointer and keys, stays silent on the network, and fits its window."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest

import armslength as al
from armslength.reporting.findings import findings_of
from armslength.reporting.page import page_of
from armslength.results import distance_text, similarity_text
from report_parties import chapters, counted, hospitals, with_margins

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
TABLET = {"width": 800, "height": 1100}


class Report:
    """A report on the disk, its numbers, and a page that shows it and writes down what happens."""

    def __init__(self, sketches, folder, about="counts"):
        self.findings = findings_of(sketches, level=0.95, about=about)
        self.path = folder / "report.html"
        self.path.write_text(page_of(self.findings, sketches, None), encoding="utf-8")

    def open(self, browser, **options):
        page = browser.new_page(**{"viewport": DESKTOP, **options})
        page.asked, page.said = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(self.path.as_uri())
        return page


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return Report(hospitals(5, epsilon=0.15), tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    return Report(hospitals(500, 12, epsilon=0.4), tmp_path_factory.mktemp("many"))


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    low, high = [0.1, 0.1, 1.0], [0.3, 0.4, 1.0]
    sketches = with_margins([low, low, high, high, low], margin_contribution=3, epsilon=10)
    return Report(sketches, tmp_path_factory.mktemp("explained"), about="populations")


@pytest.fixture
def page(few, browser):
    opened = few.open(browser)
    yield opened
    assert opened.said == []
    assert [url for url in opened.asked if not url.startswith(("file:", "data:"))] == []
    opened.close()


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def cell(page, row, column, count):
    """Where a cell of the heat map is on the screen: its square is at the lower right of the canvas."""
    box = page.locator("#heat-canvas").bounding_box()
    size = float(page.locator("#heat-canvas").get_attribute("data-side"))
    step = size / count
    left, top = box["x"] + box["width"] - 1 - size, box["y"] + box["height"] - 1 - size
    return left + (column + 0.5) * step, top + (row + 0.5) * step


def test_the_heat_map_shows_the_numbers_of_the_pair_under_the_pointer(few, page):
    page.locator("#heat-canvas").scroll_into_view_if_needed()
    findings = few.findings
    order = findings.clusters.order
    page.mouse.move(*cell(page, 1, 3, 5))
    i, j = order[1], order[3]
    reading = page.locator("#heat-reading").inner_text()
    assert findings.labels[i] in reading
    assert findings.labels[j] in reading
    assert findings.number_words(i, j) in reading
    assert f"\n{findings.verdict[i, j]}" in reading


def test_cells_with_and_without_a_verdict_look_different(few, page):
    findings = few.findings
    assert 0 < findings.count("inconclusive") < 10
    page.locator("#heat-canvas").scroll_into_view_if_needed()
    places = [(row, column) for row in range(5) for column in range(5) if row != column]
    counts = page.evaluate(
        """(points) => {
          const canvas = document.getElementById("heat-canvas"), box = canvas.getBoundingClientRect();
          const ratio = canvas.width / box.width;
          const copy = document.createElement("canvas");
          copy.width = canvas.width, copy.height = canvas.height;
          const pen = copy.getContext("2d", { willReadFrequently: true });
          pen.drawImage(canvas, 0, 0);
          return points.map(([x, y]) => {
            const data = pen.getImageData((x - box.left) * ratio - 8, (y - box.top) * ratio - 8, 16, 16).data;
            const colors = new Set();
            for (let at = 0; at < data.length; at += 4) colors.add(data.slice(at, at + 3).join());
            return colors.size;
          });
        }""",
        [cell(page, row, column, 5) for row, column in places],
    )
    order = findings.clusters.order
    found = {
        (bool(findings.verdict[order[i], order[j]] != "inconclusive"), n == 1)
        for (i, j), n in zip(places, counts, strict=True)
    }
    # A cell with a verdict has one color; hatching has several.
    assert found == {(True, True), (False, False)}


def test_keys_move_over_the_heat_map_and_choose(few, page):
    order = few.findings.clusters.order
    page.locator("#heat-canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "End", "ArrowLeft"):
        page.keyboard.press(key)
    reading = page.locator("#heat-reading").inner_text()
    assert few.findings.labels[order[2]] in reading
    assert few.findings.labels[order[3]] in reading
    page.keyboard.press("Enter")
    assert page.locator("#search").input_value() == few.findings.labels[order[2]]
    assert page.locator(f'.mark-party.is-chosen[data-party="{order[2]}"]').count() == 1


def test_the_order_can_be_alphabetical(few, page):
    page.get_by_role("button", name="by name").click()
    assert page.get_by_role("button", name="by name").get_attribute("aria-pressed") == "true"
    page.locator("#heat-canvas").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    reading = page.locator("#heat-reading").inner_text()
    assert few.findings.labels[0] in reading
    assert few.findings.labels[1] in reading


def test_a_party_is_highlighted_in_all_views(few, page):
    label = few.findings.labels[3]
    page.locator("#search").fill(label.upper())
    assert page.locator('.mark-party[data-party="3"].is-chosen').count() == 1
    assert page.locator('#parties-heading ~ div tr[data-party="3"].is-chosen').count() == 1
    assert page.locator("#pairs-table tbody tr.is-chosen").count() == 4
    assert "highlighted" in page.locator("#said").inner_text()
    page.locator("#search").press("Escape")
    assert page.locator(".is-chosen").count() == 0


def test_part_of_a_name_and_enter_find_a_party(few, page):
    page.locator("#search").fill("tal 04")
    page.keyboard.press("Enter")
    assert page.locator("#search").input_value() == few.findings.labels[3]
    page.locator("#search").fill("nobody")
    page.keyboard.press("Enter")
    assert page.locator("#said").inner_text() == "No party has such a name."


def test_the_pointer_finds_marks_of_the_map(few, page):
    findings = few.findings
    mark = page.locator('.mark-party[data-party="2"] circle')
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    tip = page.locator("#tip").inner_text()
    assert findings.labels[2] in tip
    assert findings.outliers.number_words(2) in tip
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#search").input_value() == findings.labels[2]


def column(page, table, number):
    return page.locator(f"#{table} tbody tr:not([hidden]) > :nth-child({number})").all_inner_texts()


def test_the_pairs_table_holds_the_estimates_and_sorts(few, page):
    findings = few.findings
    rows, columns = findings.pairs
    heading = page.locator('#pairs-table th[data-key="number"]')
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    order = np.argsort(findings.distance[rows, columns], kind="stable")
    expected = [findings.number_words(rows[pair], columns[pair]) for pair in order]
    assert [f"distance {text}" for text in column(page, "pairs-table", 5)] == expected
    heading.get_by_role("button").press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    page.locator("#pairs-state").select_option("inconclusive")
    assert column(page, "pairs-table", 3) == ["inconclusive"] * findings.count("inconclusive")
    page.locator("#pairs-state").select_option("all")
    page.locator("#pairs-filter").fill("hospital 02")
    assert len(column(page, "pairs-table", 1)) == 4
    page.locator("#pairs-other").fill("hospital 05")
    assert len(column(page, "pairs-table", 1)) == 1


def test_the_script_has_the_verdicts_and_numbers_of_compare(explained, browser):
    page = explained.open(browser)
    table = al.compare(explained.findings.sketches).to_arrow().to_pylist()
    expected = {(row["left"], row["right"]): row for row in table}
    shown = page.locator("#pairs-table tbody tr").all()
    assert len(shown) == len(expected)
    for row in shown:
        left, right, verdict, _, number, _ = row.locator("td").all_inner_texts()
        pair = expected[left, right]
        detail = ", not identical" if pair["verdict"] == "alike" and pair["distance_lower"] > 0 else ""
        assert verdict == f"{pair['verdict']}{detail}"
        assert number == similarity_text(pair["similarity"], pair["lower"], pair["upper"])
    page.close()


def test_the_script_writes_numbers_as_python_does(explained, browser):
    """Also where nothing is known, and where an end has no limit."""
    path = explained.path.with_name("texts.html")
    page = explained.path.read_text(encoding="utf-8")
    numbers = [
        (0.1234, 0.01, 0.4),
        (0.99876, 0.9981, 1.0),
        (0.5, 0.0, 1.0),
        (0.25, -0.22, 0.58),
        (153.2, 120.4, 190.9),
    ]
    numbers += [(1234567.0, 1e6, 2e6), (0.0123456, 0.0123, 0.0124), (5.0, 2.0, math.inf), (0.0, 0.0, 12.0)]
    script = re.search(r"function similarityText.*?\n}\n", page, re.DOTALL)[0]
    script += re.search(r"function distanceText.*?\n}\n", page, re.DOTALL)[0]
    path.write_text(f"<script>{script}</script>", encoding="utf-8")
    opened = browser.new_page()
    opened.goto(path.as_uri())
    for ends in numbers:
        values = [None if math.isinf(end) else end for end in ends]
        call = "ends => NAME(...ends.map((end) => end === null ? Infinity : end))"
        assert opened.evaluate(call.replace("NAME", "distanceText"), values) == distance_text(*ends)
        if ends[2] <= 1:
            assert opened.evaluate(call.replace("NAME", "similarityText"), values) == similarity_text(*ends)
    opened.close()


def test_without_a_script_the_page_still_tells(few, browser):
    page = few.open(browser, java_script_enabled=False)
    for visible in (".lead", "#parties .lines", ".still-heat", "#plane", "#cards .card"):
        assert page.locator(visible).first.is_visible(), visible
    for hidden in ("#heat-canvas", "#search", "#theme", "#pairs-filter"):
        assert not page.locator(hidden).is_visible(), hidden
    page.close()


def test_light_and_dark(few, browser, page):
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    pixels = "document.getElementById('heat-canvas').toDataURL()"
    before = page.evaluate(pixels)
    page.locator("#theme").click()
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    assert page.evaluate(pixels) != before
    other = few.open(browser, color_scheme="dark")
    assert other.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    assert other.locator("#theme").get_attribute("aria-pressed") == "true"
    other.emulate_media(media="print")
    assert other.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    other.close()


def test_the_canvas_is_light_on_paper(few, browser):
    page = few.open(browser, color_scheme="dark")
    pixels = "document.getElementById('heat-canvas').toDataURL()"
    dark = page.evaluate(pixels)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    light = few.open(browser)
    assert page.evaluate(pixels) == light.evaluate(pixels) != dark
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(pixels) == dark
    light.close()
    page.close()


def test_paper_has_no_controls_and_all_of_the_content(page):
    page.emulate_media(media="print")
    for hidden in (".bar", "#heat-order", "#pairs-filter", "#heat-canvas"):
        assert not page.locator(hidden).is_visible(), hidden
    for visible in (".still-heat", "#plane", "#parties .lines", "#pairs-table"):
        assert page.locator(visible).first.is_visible(), visible
    pages = page.pdf(format="A4").count(b"/Type /Page\n")
    assert 2 <= pages <= 9


@pytest.mark.parametrize("viewport", [DESKTOP, TABLET, PHONE], ids=["desktop", "tablet", "phone"])
def test_the_page_fits_its_window(few, many, explained, browser, viewport):
    for report in (few, many, explained):
        page = report.open(browser, viewport=viewport)
        assert overflow(page) <= 0
        sideways = page.evaluate(
            """() => [...document.querySelectorAll("*")].filter((element) => element.scrollWidth > element.clientWidth + 1
              && ["auto", "scroll"].includes(getComputedStyle(element).overflowX)).map((element) => element.className)"""
        )
        assert all("heat" in name.split() for name in sideways)
        assert page.said == []
        page.close()


def test_two_parties_can_be_chosen(explained, browser):
    findings = explained.findings
    page = explained.open(browser)
    text, first, second = (page.locator(f"#differs-{name}") for name in ("text", "first", "second"))
    farthest = findings.labels[findings.outliers.ranking[0]]
    assert text.inner_text().startswith(f"{farthest} against the typical party: ")
    first.select_option("0")
    second.select_option("3")
    assert second.locator("option[value='0']").is_disabled()
    assert text.inner_text().startswith("ward 1 and ward 4: differ")
    assert findings.number_words(0, 3) in text.inner_text()
    shown = dict(zip(column(page, "differs-table", 1), column(page, "differs-table", 3), strict=True))
    assert 25 < float(shown["Injuries"]) < 35
    assert "2 of 3 item groups differ" in text.inner_text()
    assert page.locator("#differs-table .bars:not(.unsure)").count() == 2
    first.select_option("3")
    assert second.input_value() == "0"
    assert float(column(page, "differs-table", 3)[0].replace("−", "-")) < 0
    first.select_option("5")
    second.select_option("4")
    assert findings.outliers.number_words(4) in text.inner_text()
    assert page.said == []
    page.close()


def test_a_reason_chooses_its_two_sides(browser, tmp_path):
    """A party against the typical party, with the numbers of al.explain at the level of all parties."""
    low, high = [0.1, 0.1, 0.3], [0.1, 0.5, 0.3]
    report = Report(with_margins([low, low, high, low, low]), tmp_path, about="populations")
    findings, page = report.findings, report.open(browser)
    row = int(findings.outliers.verdict.index("differ"))
    page.locator(f'#parties a.reasons[data-pair="5 {row}"]').click()
    assert (
        page.locator("#differs-text").inner_text().startswith(f"{findings.labels[row]} against the typical")
    )
    assert page.evaluate("location.hash") == "#differs"
    answer = al.explain(findings.sketches, findings.labels[row], level=1 - 0.05 / 5)
    assert column(page, "differs-table", 1) == list(answer.item_groups)
    shown = [float(cell.replace("−", "-")) for cell in column(page, "differs-table", 3)]
    np.testing.assert_allclose(shown, 100 * answer.difference, atol=0.051)
    page.close()


def test_a_page_of_two_parties_has_only_what_says_something(browser, tmp_path):
    report = Report(with_margins([[0.1, 0.1, 0.3], [0.1, 0.5, 0.3]]), tmp_path, about="populations")
    page = report.open(browser)
    assert report.findings.number_words(0, 1) in page.locator(".lead").inner_text()
    assert page.locator("#heat, #map, #pairs, #groups").count() == 0
    assert page.locator("#differs-table tbody tr").count() == 3
    assert page.said == []
    page.close()


def test_all_item_groups_can_be_shown(browser, tmp_path):
    protocol = chapters(margins={f"{number:02}": f"{number:02}" for number in range(30)})
    counts = np.full((3, 31), 400) * np.arange(1, 4)[:, None]
    rows = counted(protocol, ["a", "b", "c"], [90_000] * 3, counts, np.random.default_rng(5))
    report = Report(rows, tmp_path)
    page = report.open(browser)
    before = page.locator("#differs-table tbody tr").count()
    more = page.locator("#differs-more")
    assert more.inner_text() == f"{31 - before} more: show all"
    more.click()
    assert page.locator("#differs-table tbody tr").count() == 31
    assert not more.is_visible()
    assert page.said == []
    page.close()


def test_too_few_people_hide_the_table(browser, tmp_path):
    rng = np.random.default_rng(6)
    sketches = counted(chapters(), ["a", "b"], [0, 1000], [[0] * 4, [900, 100, 0, 0]], rng)
    page = Report(sketches, tmp_path).open(browser)
    assert "nothing can be said" in page.locator("#differs-text").inner_text()
    assert not page.locator("#differs-table").is_visible()
    page.close()


def test_a_phone_shows_intervals_under_the_names(explained, browser):
    page = explained.open(browser, viewport=PHONE)
    assert re.search(r"\d % → \d+\.\d %\s+\(.\d+\.\d to .\d+\.\d\)", column(page, "differs-table", 1)[0])
    region = page.locator("#differs-scroll")
    assert region.evaluate("element => element.scrollWidth - element.clientWidth") <= 0
    page.close()


def test_the_heat_map_says_in_what_a_pair_differs_and_chooses_it(explained, browser):
    findings = explained.findings
    page = explained.open(browser)
    page.locator("#heat-canvas").scroll_into_view_if_needed()
    order = findings.clusters.order
    row, column_number = order.index(0), order.index(2)
    page.mouse.move(*cell(page, row, column_number, 5))
    assert re.search(
        r"ward 3 has more with \w+ \(\+\d+\.\d points\), more", page.locator("#heat-reading").inner_text()
    )
    page.mouse.down()
    page.mouse.up()
    assert page.locator("#differs-text").inner_text().startswith("ward 1 and ward 3: ")
    assert "ward 1 and ward 3" in page.locator("#heat-shown").inner_text()
    page.close()


def test_names_for_assistive_technology(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, canvas, svg, [role=region]")].filter((element) => {
          if (element.closest("[aria-hidden=true]")) return false;
          const text = element.innerText || element.getAttribute("aria-label") || (element.labels && element.labels[0] && element.labels[0].textContent);
          return !(text && text.trim());
        }).map((element) => element.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    levels = page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3')].map((heading) => Number(heading.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.locator("main, nav, header, footer").count() == 4
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#theme").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_five_hundred_parties(many, browser):
    assert many.path.stat().st_size < 4e6
    page = many.open(browser)
    assert page.said == []
    assert page.locator("#pairs-count").inner_text() == "1 to 100 of 124,750 pairs"
    first = column(page, "pairs-table", 5)
    page.locator("#pairs-next").click()
    assert column(page, "pairs-table", 5) != first
    assert page.locator("#pairs-count").inner_text() == "101 to 200 of 124,750 pairs"
    page.locator('#pairs-table th[data-key="left"] button').click()
    assert re.match(r"hospital 01 ", column(page, "pairs-table", 1)[0])
    page.locator("#search").fill(many.findings.labels[250])
    assert page.locator(".mark-party.is-chosen text").is_visible()
    assert page.locator("details tr.is-chosen").is_visible()
    assert page.locator("#parties tr[data-party]").count() == 500
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []
    page.close()
