"""The colors of the page: contrasts that people can read, and ramps that need no hue."""

import re
from importlib.resources import files
from itertools import pairwise

import pytest

ASSETS = files("armslength.reporting") / "assets"


def tokens(name):
    text = (ASSETS / name).read_text(encoding="utf-8")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text))


THEMES = {"light": tokens("tokens.css"), "dark": tokens("dark.css")}


def luminance(color):
    """Relative luminance of WCAG 2."""
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_formula():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_both_themes_have_the_same_tokens():
    assert set(THEMES["light"]) == set(THEMES["dark"])


TEXT = [
    *((text, ground) for text in ("ink", "muted", "accent") for ground in ("paper", "surface", "sunken")),
    ("ink", "accent-soft"),
    ("accent", "accent-soft"),
    ("accent", "chosen-soft"),
    ("ink", "chosen-soft"),
    ("chosen", "surface"),
    ("chosen", "paper"),
    ("unsure", "unsure-soft"),
    ("sure", "sure-soft"),
    ("on-danger", "danger"),
    ("paper", "ink"),  # outliers, too
]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("text", "ground"), TEXT)
def test_text_has_the_contrast_of_wcag_aa(theme, text, ground):
    assert contrast(THEMES[theme][text], THEMES[theme][ground]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("mark", ["accent", "edge", "chosen", "unsure"])
def test_lines_and_marks_have_the_contrast_of_graphics(theme, mark):
    assert contrast(THEMES[theme][mark], THEMES[theme]["surface"]) >= 3
    assert contrast(THEMES[theme][mark], THEMES[theme]["paper"]) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_hatching_is_seen_on_its_ground(theme):
    assert contrast(THEMES[theme]["hatch"], THEMES[theme]["hatch-ground"]) >= 2.5


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_far_is_dark_so_that_no_hue_is_needed(theme):
    # CIE L*: even steps of lightness look alike to every kind of color vision.
    ramp = [THEMES[theme][f"ramp-{step}"] for step in range(9)]
    lightness = [116 * luminance(color) ** (1 / 3) - 16 for color in ramp]
    steps = [before - after for before, after in pairwise(lightness)]
    assert min(steps) > 4
    assert sum(steps) > 65
