"""Plots: they show what results say, for few and many rows; the plot of a plan in every kind of file."""

import functools
import io
import sys
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import armslength as al
from armslength import plots
from report_parties import with_margins

PLANS = {
    "counts": lambda: al.plan(2000, epsilon=1, delta=1e-6, distance=(20, 500), seed="x"),
    "open": lambda: al.plan(epsilon=1, distance=100, contribution=5, seed="x"),
    "refused": lambda: al.plan(1000, epsilon=1, distance=2, seed="x"),
}


@functools.cache
def planned(name):
    return PLANS[name]()


@pytest.fixture(params=list(PLANS), scope="module")
def plan(request):
    return planned(request.param)


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_files_of_every_kind(kind, tmp_path):
    plan = planned("counts")
    path = tmp_path / f"plan.{kind}"
    plan.plot(path)
    again = tmp_path / f"again.{kind}"
    plan.plot(again)
    content = path.read_bytes()
    assert content == again.read_bytes()
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, again.name}
    if kind == "png":
        assert content.startswith(b"\x89PNG")
    else:
        ET.fromstring(content)  # noqa: S314  # our own file


def test_the_curves_pass_through_the_recommended_configuration(plan):
    curves = plan._curves()
    sizes = dict(next(iter(curves.by_size.values())))
    assert sizes[plan.recommended.sketch_dim] == pytest.approx(plan.recommended.relative_error)
    by_epsilon = dict(next(iter(curves.by_epsilon.values())))
    best = min(sizes.values())
    assert by_epsilon[float(plan.situation.epsilon)] == pytest.approx(best)
    for points in curves.by_epsilon.values():
        errors = [error for _, error in points]
        assert errors == sorted(errors, reverse=True)


def test_the_figure_of_a_plan_about_populations_passes_through_what_is_seen(tmp_path):
    plan = al.plan(epsilon=1, people=3000, items_per_person=2, unit="one person")
    curves = plan._curves()
    ((_, by_size),), ((_, by_epsilon),) = curves.by_size.items(), curves.by_epsilon.items()
    assert dict(by_size)[plan.recommended.sketch_dim] == pytest.approx(1 - plan.seen)
    assert dict(by_epsilon)[1.0] == pytest.approx(min(value for _, value in by_size))
    assert by_epsilon[0][1] > 2 * by_epsilon[-1][1]  # a tenth of ε hides more than ten times of it
    assert plan.to_arrow()["is_recommended"][0].as_py()
    plan.plot(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").stat().st_size > 1000


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
    names = set(plan._curves().by_size)
    assert names <= {text.get_text() for text in figure.axes[0].texts}


def test_other_endings_are_refused_before_anything_is_written(plan, tmp_path):
    with pytest.raises(al.ParameterError, match="must end in"):
        plan.plot(tmp_path / "plan.pdf")
    assert list(tmp_path.iterdir()) == []


PROTOCOL = al.Protocol(
    al.SparseJL(input_dim=40, sketch_dim=32, seed="plots"), al.Arrays(total_share="0.1"), epsilon=1
)


@functools.cache
def parties(count, *, people=30):
    """Groups of equal and of different rows; one label is half a formula of Matplotlib's, one as long as labels can be."""
    rates = np.random.default_rng(0).gamma(1.0, 1.0, (3, 40))
    data = np.random.default_rng(count).poisson(people * rates[np.arange(count) % 3])
    labels = [r"$\frac{$ & <b>", "l" * 1024, *(f"ward {number}" for number in range(2, count))][:count]
    return al.release(PROTOCOL, data, labels=labels, ledger=al.NO_LEDGER)


PLOTS = {
    "clusters": lambda rows, **more: al.cluster(rows).plot(**more),
    "nearest": lambda rows, **more: al.nearest(rows, count=3).plot(**more),
    "outliers": lambda rows, **more: al.outliers(rows).plot(**more),
    "drift": lambda rows, **more: al.drift(rows, rows).plot(**more),
    "compare": lambda rows, **more: al.compare(rows).plot(**more),
    "two sides": lambda rows, **more: al.compare(rows[:1], rows, each=True).plot(**more),
    "top": lambda rows, **more: al.compare(rows, top=3).plot(**more),
}
HEAT_MAPS = ("compare", "two sides", "top")
FEWEST = {"clusters": 2, "nearest": 2, "outliers": 3, "compare": 2, "top": 2}


@pytest.fixture(autouse=True)
def _figures_are_closed():
    with mpl.rc_context({"figure.max_open_warning": 0}):
        yield
    plt.close("all")


@pytest.mark.parametrize("count", [1, 80])  # 80: more names than an axis has, and pairs than are drawn
@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_draws_few_and_many_rows_without_a_warning(name, count, caplog):
    rows = parties(max(count, FEWEST.get(name, 1)))
    axes = PLOTS[name](rows)
    axes.figure.savefig(io.BytesIO(), format="png", dpi=30)
    assert not caplog.records
    assert axes.get_xlabel() or axes.figure.axes[-1].get_ylabel() or name in HEAT_MAPS


@pytest.mark.parametrize("name", PLOTS)
def test_axes_can_be_given(name, monkeypatch):
    given = Figure().subplots()
    monkeypatch.setattr(plt, "subplots", None)
    assert PLOTS[name](parties(5), ax=given) is given
    assert given.has_data()


def test_a_comparison_hatches_what_is_inconclusive_and_leaves_out_what_is_not_listed():
    rows = with_margins([[0.1, 0.1, 0.3], [0.1, 0.9, 0.3]] * 2 + [[0.1, 0.1, 0.3]], [900] * 4 + [60])
    found = al.compare(rows, keep=True)
    verdicts = {(row["left"], row["right"]): row for row in found.to_arrow().to_pylist()}
    assert set(found.counts().values()) == {2, 4}
    axes = found.plot()
    (hatched,) = (patch for patch in axes.patches if patch.get_hatch())
    (image,) = axes.images
    for (left, right), row in verdicts.items():
        i, j = rows.labels.index(left), rows.labels.index(right)
        for place in ((i, j), (j, i)):
            is_hatched = hatched.get_path().contains_point(place[::-1])
            assert is_hatched == (row["verdict"] == "inconclusive") == image.get_array().mask[place]
            if not is_hatched:
                assert image.get_array()[place] == row["distance"]
    assert len(axes.get_legend().get_texts()) == 1
    assert f"{verdicts['ward 1', 'ward 2']['distance']:.3g}" in {text.get_text() for text in axes.texts}
    (image,) = al.compare(rows, verdict="differ", keep=True).plot().images
    assert (~image.get_array().mask).sum() == 2 * found.counts()["differ"]


def test_intervals_are_drawn_where_they_are():
    found = al.drift(parties(6), parties(6, people=60), about="counts", level=0.8)
    axes = found.plot()
    drawn = sorted(
        (start, stop) for lines in axes.collections for (start, _), (stop, _) in lines.get_segments()
    )
    np.testing.assert_allclose(drawn, sorted(found.distance[:, 1:].tolist()))
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    order = [found.labels[row] for row in np.argsort(-found.distance[:, 0])]
    assert [name for name in names if name.startswith("ward")] == [
        name for name in order if name.startswith("ward")
    ]


@pytest.mark.parametrize("about", ["people", "counts"])
def test_only_distances_of_counts_are_in_data_units(about):
    for answer in (al.outliers, al.nearest):
        assert ("data units" in answer(parties(4), about=about).plot().get_xlabel()) == (about == "counts")


def drawn_intervals(count, upper):
    """So many intervals whose upper end is this one."""
    ends = np.full(count, 2.0), np.full(count, 1.0), np.full(count, upper)
    return plots.forest([f"p{row}" for row in range(count)], ends, np.ones(count, dtype=bool), "x", None)


@pytest.mark.parametrize(("upper", "is_arrow"), [(3.0, False), (np.inf, True)])
def test_an_interval_without_end_is_an_arrow(upper, is_arrow):
    axes = drawn_intervals(2, upper)
    assert (">" in [line.get_marker() for line in axes.lines if len(line.get_xdata())]) == is_arrow


def test_many_lines_are_thinned_and_that_is_said():
    assert not drawn_intervals(20, 3.0).get_ylabel()
    axes = drawn_intervals(3160, 3.0)
    assert "one row in 2" in axes.get_ylabel()
    assert sum(len(lines.get_segments()) for lines in axes.collections) == 1580


def test_merges_of_parties_that_differ_are_drawn_otherwise():
    clusters = al.cluster(parties(6, people=60))
    axes = clusters.plot()
    styles = {line.get_linestyle() for line in axes.lines if len(line.get_xdata())}
    assert len(styles) == len(set(clusters.within_group.tolist()))
    heights = sorted(max(line.get_xdata()) for line in axes.lines if len(line.get_xdata()))
    np.testing.assert_allclose(heights, clusters.linkage[:, 2])


@pytest.mark.parametrize("name", ["plan", *PLOTS])
def test_without_matplotlib_the_extra_is_named(name, monkeypatch):
    rows = parties(3)
    for module in {"matplotlib", *(each for each in sys.modules if each.startswith("matplotlib."))}:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"armslength\[plot\]"):
        PLANS["open"]().plot() if name == "plan" else PLOTS[name](rows)
