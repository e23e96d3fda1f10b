"""What is drawn: labels that do not cover each other, merges that are marked, cells that are hatched."""

import re
from dataclasses import replace

import numpy as np
import pytest

from armslength.plots import text_width
from armslength.reporting.drawings import interval_bar, map_svg, still_heat
from armslength.reporting.findings import findings_of
from report_parties import hospitals


def found(sketches, **options):
    return findings_of(sketches, **{"level": 0.95, "about": "counts", **options})


NOISY = found(hospitals(12, epsilon=0.2))


def boxes(svg, width, height, wanted):
    pattern = (
        r'<g class="([^"]*)".*?<text x="([\d.]+)%" y="([\d.]+)%" dx="(-?[\d.]+)" dy="(-?[\d.]+)" '
        r'text-anchor="(\w+)">([^<]*)</text>'
    )
    for classes, x, y, dx, dy, anchor, text in re.findall(pattern, svg):
        if set(classes.split()) & wanted:
            continue
        wide = text_width(text)
        left = float(x) * width / 100 + float(dx) - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        top = float(y) * height / 100 + float(dy) - 11
        yield left, top, left + wide, top + 15


@pytest.mark.parametrize(
    ("width", "height", "hidden"),
    [(600, 450, {"hidden"}), (840, 630, {"hidden"}), (350, 262.5, {"hidden", "crowded"})],
)
def test_labels_of_the_map_do_not_cover_each_other(width, height, hidden):
    svg = map_svg(found(hospitals(24)))
    shown = list(boxes(svg, width, height, hidden))
    assert len(shown) >= (14 if width > 500 else 2)
    for at, one in enumerate(shown):
        assert one[0] > 0
        assert one[2] < width
        for other in shown[:at]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart


def test_a_map_of_many_parties_has_labels_on_demand():
    svg = map_svg(found(hospitals(70)))
    assert svg.count('class="mark-party hidden"') == 70
    assert 'class="plane many"' in svg


def test_marks_lie_inside_and_at_one_scale():
    findings = found(hospitals(24))
    places = findings.plane.places
    marks = re.findall(r'data-party="(\d+)" data-x="([\d.]+)" data-y="([\d.]+)"', map_svg(findings))
    assert [int(party) for party, _, _ in marks] == list(range(24))
    shares = np.array([[float(x), float(y)] for _, x, y in marks])
    assert (shares > 0).all()
    assert (shares < 100).all()
    pixels = shares * [8.0, 6.0]
    drawn = np.linalg.norm(pixels[0] - pixels[1]), np.linalg.norm(pixels[2] - pixels[7])
    true = np.linalg.norm(places[0] - places[1]), np.linalg.norm(places[2] - places[7])
    assert drawn[0] / drawn[1] == pytest.approx(true[0] / true[1], rel=0.02)


def test_wide_letters_count_twice():
    assert text_width("東京") == text_width("abcd")


def test_the_still_heat_map_hatches_what_is_inconclusive():
    svg = still_heat(NOISY)
    open_pairs = NOISY.count("inconclusive")
    assert 0 < open_pairs < 66
    cells = {
        kind: path.count("M") for kind, path in re.findall(r'<path ((?:class|fill)="[^"]*") d="([^"]*)"', svg)
    }
    assert cells['fill="url(#hatching)"'] == 2 * open_pairs
    assert cells['class="itself"'] == 12
    assert sum(count for kind, count in cells.items() if "ramp" in kind) == 2 * (66 - open_pairs)
    assert cells['class="ramp-0"'] >= 2
    assert cells['class="ramp-8"'] >= 2


def test_a_large_heat_map_is_left_to_the_script():
    assert still_heat(found(hospitals(50))) == ""


def test_alike_pairs_are_not_hatched():
    findings = replace(NOISY, alike=1e9)
    assert findings.count("alike") == 66
    assert "fill" not in re.sub("<defs>.*</defs>", "", still_heat(findings))


def test_a_bar_shows_its_interval_within_the_axis():
    bar = interval_bar((0.5, 0.25, 2.0), (0.0, 1.0), is_sure=True)
    assert 'x1="26.00%" x2="98.00%"' in bar
    assert 'cx="50.00%"' in bar
    assert "circle" not in interval_bar((float("nan"), 0.0, 1.0), (0.0, 1.0), is_sure=False)
