"""The protocol: its fields, its document, its refusals."""

import json
import math
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.files import canonical_json
from armslength.privacy.calibration import gaussian_scale
from armslength.privacy.exact_numbers import decimal_text
from armslength.sketches.card import guarantee_in_words

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs/reference/protocol.schema.json").read_text(encoding="utf-8")
)
SPARSE = al.SparseJL(input_dim=100, sketch_dim=16, sparsity=2, seed="trial")
FAST = al.FastJL(input_dim=10, sketch_dim=4, seed="x")

PROTOCOLS = {
    "plain": lambda: al.Protocol(SPARSE, epsilon=1),
    "gaussian": lambda: al.Protocol(SPARSE, epsilon="0.3", delta=1e-6, noise="gaussian", unit="one patient"),
    "quotient": lambda: al.Protocol(al.SignJL(input_dim=10, sketch_dim=4, seed="x"), epsilon=Fraction(1, 3)),
    "contribution": lambda: al.Protocol(SPARSE, epsilon=1, contribution=20, relation="replace"),
    "one group": lambda: al.Protocol(SPARSE, epsilon=1, contribution=20, one_group=True),
    "events": lambda: al.Protocol(SPARSE, epsilon=1, contribution=20, count="events"),
    "max norm": lambda: al.Protocol(
        SPARSE, epsilon=1, delta=1e-6, contribution=20, max_norm="4.9", total_share="0.1", relation="replace"
    ),
    "record": lambda: al.Protocol(
        al.SparseJL(sketch_dim=16, seed="trial"),
        epsilon=1,
        record={"age": ["-0.5", 18], "sex": ["F", "M"], "admitted": "month"},
        record_pairs=[("age", "sex")],
    ),
    "item weights": lambda: al.Protocol(SPARSE, epsilon=1, contribution=20, item_weights={"flu": 2}),
    "auto": lambda: al.Protocol(
        al.HadamardJL(input_dim=100, sketch_dim=16, seed="x"),
        epsilon=1,
        delta=1e-9,
        resolution="auto",
        radius="2.5",
        changed_entries=3,
    ),
    "range": lambda: al.Protocol(SPARSE, epsilon=1, resolution=0.25, on_grid=False, value_range=(-1, "2.5")),
    "coarse": lambda: al.Protocol(SPARSE, epsilon=1, resolution=4, radius=8),
    "dropped": lambda: al.Protocol(SPARSE, epsilon=0.001, dropped_bits=5),
    "input": lambda: al.Protocol(
        al.FastJL(input_dim=100, sketch_dim=16, seed="x", density=0.3),
        epsilon=1,
        delta=1e-6,
        noise_site="input",
    ),
    "l2": lambda: al.Protocol(SPARSE, epsilon=1, delta=1e-6, norm="l2", radius="2.5"),
    "l2 off the grid": lambda: al.Protocol(
        al.Identity(input_dim=5), epsilon=1, delta=1e-6, norm="l2", radius=2, resolution="auto"
    ),
    "l2 input": lambda: al.Protocol(
        al.FastJL(input_dim=100, sketch_dim=16, seed="x", density=0.3),
        epsilon=1,
        delta=1e-6,
        norm="l2",
        radius=2,
        noise_site="input",
    ),
    "open": lambda: al.Protocol(al.SparseJL(sketch_dim=16, sparsity=2, seed="x"), epsilon=1, items="int64"),
    "named": lambda: al.Protocol(al.Identity(input_dim=3), epsilon=1, vocabulary=["a", "b", "ç"]),
    "matrix": lambda: al.Protocol(
        al.MatrixJL([[1, -2], [0, 3]], scale=0.5, variance_coefficients=(0.1, 0.0)), epsilon=1
    ),
}


@pytest.fixture(params=list(PROTOCOLS))
def protocol(request):
    return PROTOCOLS[request.param]()


def test_a_protocol_comes_back_from_its_file(protocol, tmp_path):
    protocol.save(tmp_path / "p.json")
    again = al.Protocol.load(tmp_path / "p.json")
    assert again == protocol
    assert hash(again) == hash(protocol)
    assert again.document() == protocol.document()
    assert (again.law, again.neighbors, again.space) == (protocol.law, protocol.neighbors, protocol.space)
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_documents_follow_the_published_schema(protocol):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(protocol.document(), SCHEMA)


def test_auto_is_never_stored():
    document = al.Protocol(SPARSE, epsilon=1, delta=1e-6, resolution="auto").document()
    assert "auto" not in json.dumps(document)


def test_a_protocol_cannot_be_changed(protocol):
    with pytest.raises(AttributeError, match="cannot be changed"):
        protocol.epsilon = Fraction(100)


def test_fingerprints_are_frozen():
    # A change of these would orphan every protocol file in the world.
    protocol = al.Protocol(al.SparseJL(input_dim=70_000, sketch_dim=256, seed="trial-2026"), epsilon=1.0)
    assert protocol.fingerprint == "66c36d89c833a3d6a13dba55bf7407c0be0df6ab1a8eb75ccdc62286af072970"
    assert protocol.space == "4c4117f532df80fa683c95f738df9dd23a2bbd82b6ec1c30558b85e285d02972"


def test_space_ignores_what_may_differ_between_parties():
    base = al.Protocol(SPARSE, epsilon=1)
    for same in (
        al.Protocol(SPARSE, epsilon=2),
        al.Protocol(SPARSE, epsilon=1, delta=1e-6, noise="gaussian"),
        al.Protocol(SPARSE, epsilon=1, radius=5, unit="one household"),
        al.Protocol(SPARSE, epsilon=0.001, dropped_bits=3),
    ):
        assert same.space == base.space
        assert same.fingerprint != base.fingerprint
    for other in (
        al.Protocol(al.SparseJL(input_dim=100, sketch_dim=16, sparsity=2, seed="other"), epsilon=1),
        al.Protocol(SPARSE, epsilon=1, resolution=0.5),
        al.Protocol(SPARSE, epsilon=1, items="int64"),
        al.Protocol(SPARSE, epsilon=1, vocabulary=[str(i) for i in range(100)]),
    ):
        assert other.space != base.space


def edit(protocol, **changes):
    return {**protocol.document(), **changes}


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"version": 2}, al.UnsupportedVersionError, "must be 1, got 2"),
        ({"version": True}, al.CorruptFileError, "whole number"),
        ({"format": "other"}, al.CorruptFileError, "format"),
        ({"surprise": 1}, al.CorruptFileError, "unknown 'surprise'"),
        ({"epsilon": "2"}, al.CorruptFileError, "another scale than"),
        ({"epsilon": 1}, al.CorruptFileError, "epsilon"),
        ({"derived": {"grid_radius": "1", "scale": "0x1.0p-3"}}, al.CorruptFileError, "edited by hand"),
        ({"noise": "auto"}, al.CorruptFileError, "noise"),
        (
            {"transform": {"name": "os.system", "parameters": {}}},
            al.CorruptFileError,
            "transform must be one of",
        ),
        ({"transform": {"name": "FastJL", "parameters": {"density": "1"}}}, al.CorruptFileError, "valid"),
        ({"unit": 3}, al.CorruptFileError, "unit"),
        ({"transform": 3}, al.CorruptFileError, "name and parameters"),
        ({"total_share": "0.5"}, al.CorruptFileError, "scale, total_scale"),
    ],
)
def test_edited_documents_are_refused(changes, error, says, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps(edit(al.Protocol(SPARSE, epsilon=1), **changes)), encoding="utf-8")
    with pytest.raises(error) as caught:
        al.Protocol.load(path)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_fields_are_named(tmp_path):
    document = al.Protocol(SPARSE, epsilon=1).document()
    del document["delta"]
    (tmp_path / "p.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(al.CorruptFileError, match="missing 'delta'"):
        al.Protocol.load(tmp_path / "p.json")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, "\xff"]
)
def test_what_is_not_a_protocol_is_refused(text, tmp_path):
    (tmp_path / "p.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(al.FormatError):
        al.Protocol.load(tmp_path / "p.json")


def test_a_missing_file_is_a_clear_line(tmp_path):
    with pytest.raises(al.ParameterError, match="must be a readable file"):
        al.Protocol.load(tmp_path / "nowhere.json")
    with pytest.raises(al.ParameterError, match="must be writable"):
        al.Protocol(SPARSE, epsilon=1).save(tmp_path / "no folder" / "p.json")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1e-14}, "2\\^40"),
        ({"delta": 1}, "delta"),
        ({"noise": "gaussian"}, "delta"),
        ({"relation": "swap"}, "relation"),
        ({"radius": 0}, "radius"),
        ({"radius": "0.5"}, "radius"),
        ({"radius": 3, "contribution": 2}, "radius"),
        ({"count": "people"}, "contribution"),
        ({"contribution": 1, "one_group": 1}, "one_group"),
        ({"resolution": 3}, "power of two"),
        ({"resolution": 2.0**-70}, "resolution"),
        ({"on_grid": 1}, "on_grid"),
        ({"changed_entries": 0}, "changed_entries"),
        ({"value_range": 5}, "value_range"),
        ({"value_range": (2, 1)}, "value_range"),
        ({"value_range": (0, math.inf)}, "value_range"),
        ({"value_range": (0, 2**63)}, "2\\^62"),
        ({"total_share": 1}, "total_share"),
        ({"vocabulary": ["a"]}, "100 names"),
        ({"vocabulary": ["a"] * 100}, "duplicates"),
        ({"unit": "two\nlines"}, "unit"),
        ({"noise_site": "input"}, "FastJL"),
        ({"transform": FAST, "noise": "laplace", "noise_site": "input"}, "Gaussian"),
        ({"transform": "SparseJL"}, "transform"),
        ({"transform": al.SparseJL(sketch_dim=4, seed="x"), "resolution": "auto"}, "changed_entries"),
        ({"transform": al.SparseJL(sketch_dim=4, seed="x"), "vocabulary": ["a"]}, "open vocabulary"),
    ],
)
def test_bad_fields_give_one_clear_line(arguments, says):
    with pytest.raises(al.ParameterError, match=says) as caught:
        al.Protocol(**{"transform": SPARSE, "epsilon": 1, **arguments})
    assert "\n" not in str(caught.value)


def test_people_are_counted_where_there_is_a_contribution():
    assert al.Protocol(SPARSE, epsilon=1).count is None
    people = al.Protocol(SPARSE, epsilon=1, contribution=20)
    others = [{"count": "events"}, {"one_group": True}, {"count": "events", "one_group": True}]
    protocols = [people, *(al.Protocol(SPARSE, epsilon=1, contribution=20, **fields) for fields in others)]
    assert people == al.Protocol(SPARSE, epsilon=1, contribution=20, count="people", one_group=False)
    # what is counted never changes what one person can move, nor which sketches can be compared
    assert len({each.fingerprint for each in protocols}) == 4
    assert len({(each.radius, each.neighbors, each.law, each.space) for each in protocols}) == 1
    fields = {row["field"]: row["value"] for row in protocols[3].to_arrow().to_pylist()}
    assert (fields["count"], fields["one_group"]) == ("events", "True")


def test_the_schema_knows_what_goes_with_a_contribution():
    validator = jsonschema.Draft202012Validator(SCHEMA)
    document = al.Protocol(SPARSE, epsilon=1, contribution=20).document()
    for wrong in ({"count": None}, {"count": "visits"}, {"one_group": None}, {"contribution": None}):
        assert not validator.is_valid({**document, **wrong})


def bounded_protocol(transform=SPARSE, **fields):
    return al.Protocol(
        transform, **{"epsilon": 1, "delta": "1e-6", "contribution": 20, "max_norm": 5, **fields}
    )


@pytest.mark.parametrize(
    ("transform", "fields", "bound"),
    [
        (SPARSE, {}, 50),  # s·ρ², s = 2
        (SPARSE, {"max_norm": "4.9"}, 48),  # ⌊48.02⌋
        (SPARSE, {"max_norm": "4.9", "resolution": 0.5}, 192),  # ⌊192.08⌋
        (SPARSE, {"max_norm": 20}, 800),  # s·C²
        (
            SPARSE,
            {"max_norm": 7, "contribution": 7, "resolution": 2},
            18,
        ),  # not ⌊24.5⌋: B = 3, and nobody is longer than s·B²
        (al.Identity(input_dim=9), {}, 25),
        (al.SparseJL(sketch_dim=8, sparsity=4, seed="x", construction="graph"), {}, 100),
        (al.SparseJL(input_dim=9, sketch_dim=3, seed="x", construction="balanced"), {"count": "events"}, 25),
    ],
)
def test_the_noise_covers_the_bound_in_the_sketch(transform, fields, bound):
    one, two = (bounded_protocol(transform, **fields, relation=each) for each in ("add_remove", "replace"))
    assert (one.sketch_bound, two.sketch_bound, one.document()["derived"]["sketch_bound"]) == (
        bound,
        bound,
        str(bound),
    )
    assert (one.noise, one.law.scale) == ("gaussian", gaussian_scale(bound, Fraction(1), Fraction("1e-6")))
    assert two.law.scale == gaussian_scale(4 * bound, Fraction(1), Fraction("1e-6"))
    assert one.space == al.Protocol(transform, epsilon=1, radius=2, resolution=one.resolution).space


def test_totals_beside_a_bound_in_the_sketch_cover_the_contribution():
    protocol = bounded_protocol(total_share="0.1")
    assert protocol.law.scale == gaussian_scale(50, Fraction("0.9"), Fraction("1e-6"))
    assert protocol.total_law == al.Protocol(SPARSE, epsilon=1, contribution=20, total_share="0.1").total_law


def test_every_other_transform_refuses_a_bound_in_the_sketch():
    others = (al.HadamardJL, al.FastJL, al.GaussianJL, al.SignJL)
    transforms = [kind(input_dim=16, sketch_dim=4, seed="x") for kind in others]
    for transform in (
        *transforms,
        al.MatrixJL([[1, -1], [0, 1]], scale=0.5, variance_coefficients=(0.1, 0.0)),
    ):
        with pytest.raises(al.ParameterError, match=f"SparseJL or Identity, got {transform.name}"):
            bounded_protocol(transform)
        with pytest.raises(al.ParameterError, match=f"SparseJL or Identity, got {transform.name}"):
            transform.signed_rows([0])


def test_the_largest_contribution_with_a_bound_in_the_sketch():
    """s·B² < 2^63, exactly."""
    for sparsity in (1, 2, 4):
        transform = al.SparseJL(sketch_dim=8, sparsity=sparsity, seed="x")
        most = math.isqrt((2**63 - 1) // sparsity)
        assert bounded_protocol(transform, contribution=most).sketch_bound == 25 * sparsity
        with pytest.raises(al.ParameterError, match=r"below 2\^31"):
            bounded_protocol(transform, contribution=most + 1)
        with pytest.raises(al.ParameterError, match=r"below 2\^31"):
            bounded_protocol(transform, contribution=most, resolution=0.5)


def test_a_protocol_without_a_bound_in_the_sketch_does_not_mention_it():
    protocol = al.Protocol(SPARSE, epsilon=1, contribution=20)
    assert "max_norm" not in protocol.document()
    assert (protocol.max_norm, protocol.sketch_bound, protocol.neighbors.sketch_radius_squared) == (
        None,
        None,
        None,
    )
    for wrong in ({"max_norm": None}, {"max_norm": "5"}):
        with pytest.raises(al.CorruptFileError):
            al.Protocol.from_document({**protocol.document(), **wrong})
    bounded = bounded_protocol().document()
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for wrong in (
        {"max_norm": "5.0"},
        {"max_norm": "6"},
        {"max_norm": None},
        {"noise": "laplace"},
        {"contribution": None},
    ):
        assert "max_norm" in wrong or not validator.is_valid({**bounded, **wrong})
        with pytest.raises(al.CorruptFileError):
            al.Protocol.from_document({**bounded, **wrong})
    del bounded["max_norm"]
    assert not validator.is_valid(bounded)
    with pytest.raises(al.CorruptFileError):
        al.Protocol.from_document(bounded)


def test_rows_and_streams_refuse_a_bound_in_the_sketch(tmp_path):
    """Nothing bounds there what one person adds."""
    protocol = bounded_protocol(al.Identity(input_dim=4), unit="one patient")
    ledger = al.Ledger(tmp_path / "ledger.sqlite", create=True)
    with pytest.raises(al.ParameterError, match="max_norm must be None, except for tables"):
        protocol.release(np.zeros((1, 4), dtype=int), ledger=ledger, population="visits")
    with pytest.raises(al.ParameterError, match="max_norm must be None, except for tables"):
        protocol.stream(label="north", ledger=ledger, population="visits")
    assert not ledger.entries()


def test_contribution_sets_the_radius():
    assert al.Protocol(SPARSE, epsilon=1, contribution=20).radius == 20
    assert al.Protocol(SPARSE, epsilon=1, contribution=20, relation="replace").radius == 40
    assert al.Protocol(SPARSE, epsilon=1, contribution=20).law.scale == 20 * 2


@pytest.mark.parametrize(
    ("radius", "resolution", "on_grid", "changed_entries", "expected"),
    [
        (1, 1, True, None, 1),
        (2.5, 1, True, None, 2),
        (1, 0.25, True, None, 4),
        (1, 1, False, None, 100),
        (1, 1, False, 3, 3),
        (2.5, 1, False, 1, 3),
        (8, 4, True, None, 2),
        (8, 4, False, 2, 3),
    ],
)
def test_radius_on_the_grid(radius, resolution, on_grid, changed_entries, expected):
    protocol = al.Protocol(
        SPARSE,
        epsilon=1,
        radius=radius,
        resolution=resolution,
        on_grid=on_grid,
        changed_entries=changed_entries,
    )
    assert protocol.neighbors.radius == expected


@pytest.mark.parametrize(
    ("radius", "resolution", "on_grid", "changed_entries", "squared"),
    [
        (1, 1, True, None, 1),
        ("2.5", 1, True, None, 6),
        ("1.5", 0.25, True, None, 36),
        (1, 1, False, 1, 4),
        (1, 1, False, 3, 7),  # (1 + √3)² = 7.46
        (3, 2, False, 2, 8),  # (1.5 + √2)² = 8.49
    ],
)
def test_radius_of_l2_neighbors_on_the_grid(radius, resolution, on_grid, changed_entries, squared):
    protocol = al.Protocol(
        SPARSE,
        epsilon=1,
        delta=1e-6,
        norm="l2",
        radius=radius,
        resolution=resolution,
        on_grid=on_grid,
        changed_entries=changed_entries,
    )
    assert protocol.neighbors.radius_squared == squared
    expected = gaussian_scale(math.ceil(squared * SPARSE.operator_norm_squared), 1, 1e-6)
    assert protocol.law.scale == expected
    with pytest.raises(al.ParameterError, match="radius_squared"):
        _ = protocol.neighbors.radius


def test_the_norm_is_told_in_the_card_and_in_the_ledger(tmp_path):
    protocol = al.Protocol(al.Identity(input_dim=5), epsilon=1, delta=1e-6, norm="l2", radius=2)
    ledger = al.Ledger(tmp_path / "l.sqlite", create=True)
    sketches = protocol.release(np.zeros((1, 5), dtype=int), population="p", ledger=ledger)
    assert "at most 2 in l2 norm" in guarantee_in_words(*sketches.releases[0])
    assert [(entry.radius, entry.norm) for entry in ledger.entries()] == [("2", "l2")]


def test_an_open_vocabulary_has_no_l2_neighbors():
    with pytest.raises(al.ParameterError, match="open vocabulary"):
        al.Protocol(al.SparseJL(sketch_dim=4, seed="x"), epsilon=1, delta=1e-6, norm="l2")


@given(st.fractions(min_value="1/1000", max_value=1000), st.integers(1, 100))
def test_resolution_auto_widens_by_under_a_thousandth_and_is_the_largest_that_does(radius, changed_entries):
    protocol = al.Protocol(
        SPARSE, epsilon=1, radius=radius, resolution="auto", changed_entries=changed_entries
    )
    widened = protocol.neighbors.radius * protocol.resolution / radius
    assert 1 <= widened <= Fraction(1001, 1000)
    coarser = 2 * protocol.resolution
    assert (math.ceil(radius / coarser) + changed_entries - 1) * coarser > Fraction(1001, 1000) * radius
    assert not protocol.on_grid


def test_noise_auto_takes_the_law_with_the_smaller_exact_variance():
    # Erratum 10: at (1, 1e-6) Laplace wins for s below 6.7 at distance 0, and below 8.9 far away; e^(−s) says 13.8.
    def chosen(s, distance=0.0):
        return al.Protocol(
            al.SparseJL(input_dim=100, sketch_dim=5040, sparsity=s, seed="x", construction="graph"),
            epsilon=1,
            delta=1e-6,
            distance=distance,
        ).noise

    assert [chosen(s) for s in (1, 6, 7, 9)] == ["laplace", "laplace", "gaussian", "gaussian"]
    assert [chosen(s, 1e6) for s in (1, 7, 8, 9)] == ["laplace", "laplace", "laplace", "gaussian"]
    assert (
        al.Protocol(
            al.SparseJL(input_dim=100, sketch_dim=5040, sparsity=5040, seed="x", construction="graph"),
            epsilon=1,
            delta=0,
        ).noise
        == "laplace"
    )
    assert (
        al.Protocol(al.GaussianJL(input_dim=100, sketch_dim=64, seed="x"), epsilon=1, delta=1e-6).noise
        == "gaussian"
    )


def test_released_delta_is_zero_under_laplace():
    assert al.Protocol(SPARSE, epsilon=1, delta=1e-6, noise="laplace").released_delta == 0
    assert al.Protocol(SPARSE, epsilon=1, delta=1e-6, noise="gaussian").released_delta == Fraction(1, 10**6)


@given(st.fractions())
def test_numbers_are_written_exactly(number):
    assert Fraction(decimal_text(number)) == number


def test_canonical_json_is_rfc_8785():
    document = {"b": [1, True, None, 'é\n\u0001"'], "a": {"z": "", "y": -5}}
    assert canonical_json(document) == '{"a":{"y":-5,"z":""},"b":[1,true,null,"é\\n\\u0001\\""]}'.encode()
    # by UTF-16 code units, of which an emoji has two that come before U+FB01
    assert (
        canonical_json({"\ufb01": 1, "😀": 2, "é": 3, "z": 4}) == '{"z":4,"é":3,"😀":2,"\ufb01":1}'.encode()
    )
    for bad in ({"a": 1.5}, {"a": 2**53}, {1: 2}, {"a": b""}):
        with pytest.raises(TypeError):
            canonical_json(bad)
