"""The plot of a plan: it shows what the plan says, in every kind of file."""

import builtins
import re
import xml.etree.ElementTree as ET

import pytest

import armslength as al
from armslength.planner.plan_page import curves_of

PLANS = {
    "counts": lambda: al.plan(2000, epsilon=1, delta=1e-6, distance=(20, 500), seed="x"),
    "open": lambda: al.plan(epsilon=1, people=1000, contribution=5, seed="x"),
    "refused": lambda: al.plan(1000, epsilon=1, distance=2, seed="x"),
    "embedding": lambda: al.plan(
        768, epsilon=1, delta=1e-6, norm="l2", radius=2, resolution="auto", distance=1, seed="x"
    ),
}


@pytest.fixture(params=list(PLANS), scope="module")
def plan(request):
    return PLANS[request.param]()


@pytest.mark.parametrize("kind", ["html", "svg", "png"])
def test_files_of_every_kind(plan, kind, tmp_path):
    path = tmp_path / f"plan.{kind}"
    plan.plot(path)
    again = tmp_path / f"again.{kind}"
    plan.plot(again)
    content = path.read_bytes()
    assert content == again.read_bytes()
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, again.name}
    if kind == "png":
        assert content.startswith(b"\x89PNG")
        return
    text = content.decode()
    if kind == "svg":
        ET.fromstring(text)  # noqa: S314  # our own file
    else:
        assert text.startswith("<!doctype html>")
        assert "</html>" in text
        # One page that asks nobody for anything: addresses occur only as names of XML vocabularies.
        outside = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', outside)


def test_the_curves_pass_through_the_recommended_configuration(plan):
    curves = curves_of(plan)
    sizes = dict(curves.by_size[0].points)
    assert sizes[plan.recommended.sketch_dim] == pytest.approx(plan.recommended.relative_error)
    by_epsilon = dict(curves.by_epsilon[0].points)
    best = min(sizes.values())
    assert by_epsilon[float(plan.situation.epsilon)] == pytest.approx(best)
    for curve in curves.by_epsilon:
        errors = [error for _, error in curve.points]
        assert errors == sorted(errors, reverse=True)


def test_what_cannot_be_resolved_is_shaded(plan):
    figure = plan.plot()
    for axes in figure.axes:
        bottom, top = axes.get_ylim()
        shade = axes.patches[0].get_extents().transformed(axes.transData.inverted())
        assert shade.y0 == pytest.approx(1.0)
        assert shade.y1 == pytest.approx(top)
        assert bottom < 1 < top
        assert axes.get_xlabel()
        assert any("cannot be resolved" in text.get_text() for text in axes.texts)
    names = {curve.name for curve in curves_of(plan).by_size}
    assert any(name.startswith("the paper's own SJLT, ") for name in names)
    assert names <= {text.get_text() for text in figure.axes[0].texts}


def test_other_endings_are_refused_before_anything_is_written(plan, tmp_path):
    with pytest.raises(al.ParameterError, match="must end in"):
        plan.plot(tmp_path / "plan.pdf")
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_there_is_a_clear_line(monkeypatch):
    real = builtins.__import__

    def no_matplotlib(name, *arguments, **named):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", no_matplotlib)
    with pytest.raises(al.ParameterError, match=r"armslength\[plot\]"):
        PLANS["open"]().plot()
