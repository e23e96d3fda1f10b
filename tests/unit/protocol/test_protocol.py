"""The protocol: its fields, its document, its refusals."""

import json
import math
from fractions import Fraction
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armslength as al
from armslength.errors import CorruptFileError, UnsupportedVersionError
from armslength.files import canonical_json
from armslength.privacy.exact_numbers import decimal_text
from flat_protocol import flat_protocol

SCHEMA = json.loads(
    (Path(__file__).parents[3] / "docs/reference/protocol.schema.json").read_text(encoding="utf-8")
)
SPARSE = al.SparseJL(input_dim=100, sketch_dim=16, sparsity=2, seed="trial")
FAST = al.FastJL(input_dim=10, sketch_dim=4, seed="x")

PROTOCOLS = {
    "plain": lambda: al.Protocol(SPARSE, epsilon=1),
    "gaussian": lambda: al.Protocol(SPARSE, epsilon="0.3", delta=1e-6, noise="gaussian", unit="one patient"),
    "quotient": lambda: al.Protocol(al.SignJL(input_dim=10, sketch_dim=4, seed="x"), epsilon=Fraction(1, 3)),
    "contribution": lambda: al.Protocol(SPARSE, al.Counts(20), epsilon=1, relation="replace"),
    "votes": lambda: al.Protocol(SPARSE, al.Votes(), epsilon=1, relation="replace"),
    "votes with all": lambda: al.Protocol(
        al.SparseJL(sketch_dim=16, seed="trial"),
        al.Votes(
            total_share="0.1",
            spread_sample="0.25",
            item_groups=al.ItemGroups({"a": "vowels"}, share="0.3", limit=2),
        ),
        epsilon=1,
    ),
    "record": lambda: al.Protocol(
        al.SparseJL(sketch_dim=16, seed="trial"),
        al.Votes(
            record={"age": ["-0.5", 18], "sex": ["F", "M"], "admitted": "month"},
            record_pairs=[("age", "sex")],
        ),
        epsilon=1,
    ),
    "auto": lambda: al.Protocol(
        al.HadamardJL(input_dim=100, sketch_dim=16, seed="x"),
        al.Arrays(resolution="auto", radius="2.5", changed_entries=3),
        epsilon=1,
        delta=1e-9,
    ),
    "range": lambda: al.Protocol(
        SPARSE, al.Arrays(resolution=0.25, on_grid=False, value_range=(-1, "2.5")), epsilon=1
    ),
    "coarse": lambda: al.Protocol(SPARSE, al.Arrays(resolution=4, radius=8), epsilon=1),
    "input": lambda: al.Protocol(
        al.FastJL(input_dim=100, sketch_dim=16, seed="x", density=0.3),
        epsilon=1,
        delta=1e-6,
        noise_site="input",
    ),
    "open": lambda: al.Protocol(al.SparseJL(sketch_dim=16, sparsity=2, seed="x"), epsilon=1, items="int64"),
    "named": lambda: al.Protocol(al.Identity(input_dim=3), epsilon=1, vocabulary=["a", "b", "ç"]),
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
    assert (again.law, again.grid_radius, again.space) == (protocol.law, protocol.grid_radius, protocol.space)
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_documents_follow_the_published_schema(protocol):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(protocol.document(), SCHEMA)


def test_auto_is_never_stored():
    document = al.Protocol(SPARSE, al.Arrays(resolution="auto"), epsilon=1, delta=1e-6).document()
    assert "auto" not in json.dumps(document)


def test_a_protocol_cannot_be_changed(protocol):
    with pytest.raises(AttributeError, match="cannot be changed"):
        protocol.epsilon = Fraction(100)


def test_fingerprints_are_frozen():
    # A change of these would orphan every protocol file in the world.
    protocol = al.Protocol(al.SparseJL(input_dim=70_000, sketch_dim=256, seed="trial-2026"), epsilon=1.0)
    assert protocol.fingerprint == "100a02421230d0709731ecfbdb1b1e8da123c8ae7f9c09c9b388632ac4d33538"
    assert protocol.space == "4c4117f532df80fa683c95f738df9dd23a2bbd82b6ec1c30558b85e285d02972"
    votes = PROTOCOLS["votes with all"]()
    assert votes.fingerprint == "d5cda497faffbd110576d502577bf60e78b7fc0510a8ff96ab5469560a54d10d"
    assert votes.space == "53efaeae94d3435e411ebbae1d7e5e166c4dce9fb243dc9d9bc51a20d4a1ff4d"


def test_space_ignores_what_may_differ_between_parties():
    base = al.Protocol(SPARSE, epsilon=1)
    for same in (
        al.Protocol(SPARSE, epsilon=2),
        al.Protocol(SPARSE, epsilon=1, delta=1e-6, noise="gaussian"),
        al.Protocol(SPARSE, al.Arrays(radius=5), epsilon=1, unit="one household"),
    ):
        assert same.space == base.space
        assert same.fingerprint != base.fingerprint
    for other in (
        al.Protocol(al.SparseJL(input_dim=100, sketch_dim=16, sparsity=2, seed="other"), epsilon=1),
        al.Protocol(SPARSE, al.Arrays(resolution=0.5), epsilon=1),
        al.Protocol(SPARSE, epsilon=1, items="int64"),
        al.Protocol(SPARSE, epsilon=1, vocabulary=[str(i) for i in range(100)]),
    ):
        assert other.space != base.space


def edit(protocol, **changes):
    return {**protocol.document(), **changes}


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"version": 3}, UnsupportedVersionError, "newer than version 2"),
        ({"version": True}, CorruptFileError, "whole number"),
        ({"format": "other"}, CorruptFileError, "format"),
        ({"surprise": 1}, CorruptFileError, "unknown 'surprise'"),
        ({"epsilon": "2"}, CorruptFileError, "another scale"),
        ({"epsilon": 1}, CorruptFileError, "epsilon"),
        ({"derived": {"grid_radius": "1", "scale": "0x1.0p-3"}}, CorruptFileError, "edited by hand"),
        ({"noise": "auto"}, CorruptFileError, "noise"),
        (
            {"transform": {"name": "os.system", "parameters": {}}},
            CorruptFileError,
            "transform must be one of",
        ),
        ({"transform": {"name": "FastJL", "parameters": {"density": "1"}}}, CorruptFileError, "valid"),
        ({"unit": 3}, CorruptFileError, "unit"),
        ({"transform": 3}, CorruptFileError, "name and parameters"),
        ({"total_share": "0.5"}, CorruptFileError, "scale, total_scale"),
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
    with pytest.raises(CorruptFileError, match="missing 'delta'"):
        al.Protocol.load(tmp_path / "p.json")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 100_000, "\xff"]
)
def test_what_is_not_a_protocol_is_refused(text, tmp_path):
    (tmp_path / "p.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(al.FormatError):
        al.Protocol.load(tmp_path / "p.json")


def test_a_missing_file_is_a_clear_line(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        al.Protocol.load(tmp_path / "nowhere.json")
    with pytest.raises(al.ParameterError, match="cannot write"):
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
        ({"contribution": "votes"}, "contribution"),
        ({"contribution": 0}, "contribution"),
        ({"contribution": "vote", "radius": 1}, "radius"),
        ({"contribution": "vote", "noise": "gaussian", "delta": 1e-6}, "'laplace' for votes"),
        ({"contribution": 2, "noise": "gaussian", "delta": 1e-6}, "'laplace' for event tables"),
        ({"contribution": "vote", "resolution": 0.5}, "resolution"),
        ({"contribution": "vote", "on_grid": False}, "on_grid"),
        ({"contribution": "vote", "changed_entries": 9}, "changed_entries"),
        ({"contribution": "vote", "value_range": (0, 1)}, "value_range"),
        ({"contribution": "vote", "transform": FAST}, "SparseJL or Identity"),
        ({"contribution": "vote", "spread_sample": 0}, "spread_sample"),
        ({"contribution": 1, "spread_sample": "0.5"}, "spread_sample"),
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
        ({"vocabulary": ["a"] * 100}, "each name once"),
        ({"unit": "two\nlines"}, "unit"),
        ({"noise_site": "input"}, "FastJL"),
        ({"transform": FAST, "noise": "laplace", "noise_site": "input"}, "gaussian"),
        ({"transform": "SparseJL"}, "transform"),
        ({"transform": al.SparseJL(sketch_dim=4, seed="x"), "resolution": "auto"}, "changed_entries"),
        ({"transform": al.SparseJL(sketch_dim=4, seed="x"), "vocabulary": ["a"]}, "fixed input_dim"),
    ],
)
def test_bad_fields_give_one_clear_line(arguments, says):
    with pytest.raises(al.ParameterError, match=says) as caught:
        flat_protocol(**{"transform": SPARSE, "epsilon": 1, **arguments})
    assert "\n" not in str(caught.value)


def test_votes_fix_their_radius_grid_and_noise():
    one = al.Protocol(SPARSE, al.Votes(), epsilon=1)
    assert (one.votes, one.radius, one.resolution, one.grid_radius) == (True, 1, Fraction(1, 2**20), 2**20)
    assert (one.noise, one.law.scale) == ("laplace", 2.0**21)  # two entries in a column
    assert (one.total_law, one.spread_law, one.releases_norm) == (None, None, False)
    two = al.Protocol(SPARSE, al.Votes(), epsilon=1, relation="replace")
    assert (two.radius, two.law.scale) == (2, 2.0**22)
    counts = al.Protocol(SPARSE, al.Counts(1), epsilon=1)
    assert not counts.votes
    assert counts.space != one.space


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_scalars_of_votes_have_the_noise_of_their_share(relation):
    made = al.Protocol(SPARSE, al.Votes(total_share="0.125"), epsilon=2, relation=relation)
    people = 1 if relation == "add_remove" else 2
    assert made.totals_epsilon == Fraction(1, 4)
    assert made.total_law.scale == people * 2 * (2**21 + 1)  # T − Q: (2R + 1)/2 over ε
    assert made.spread_law.scale == 2 * made.total_law.scale  # Q and F
    assert made.releases_norm
    assert not al.Protocol(al.Identity(input_dim=4097), al.Votes(total_share="0.1"), epsilon=2).releases_norm


def test_the_schema_knows_what_goes_with_votes():
    validator = jsonschema.Draft202012Validator(SCHEMA)
    votes, amounts = (
        PROTOCOLS[name]().document() | {"vocabulary": None} for name in ("votes with all", "contribution")
    )
    gaussian, fine = {"noise": "gaussian"}, {"resolution": (1.0).hex()}
    wrong_votes = {"contribution": "votes"}, {"contribution": 3}, gaussian, fine, {"items": "int64"}
    for wrong in wrong_votes:
        assert not validator.is_valid({**votes, **wrong})
    for wrong in ({"contribution": "vote"}, gaussian, {"spread_sample": "0.5"}, {"count": "events"}):
        assert not validator.is_valid({**amounts, **wrong})


def test_contribution_sets_the_radius():
    assert al.Protocol(SPARSE, al.Counts(20), epsilon=1).radius == 20
    assert al.Protocol(SPARSE, al.Counts(20), epsilon=1, relation="replace").radius == 40
    assert al.Protocol(SPARSE, al.Counts(20), epsilon=1).law.scale == 20 * 2


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
        al.Arrays(radius=radius, resolution=resolution, on_grid=on_grid, changed_entries=changed_entries),
        epsilon=1,
    )
    assert protocol.grid_radius == expected


@given(st.fractions(min_value="1/1000", max_value=1000), st.integers(1, 100))
def test_resolution_auto_widens_by_under_a_thousandth_and_is_the_largest_that_does(radius, changed_entries):
    protocol = al.Protocol(
        SPARSE, al.Arrays(radius=radius, resolution="auto", changed_entries=changed_entries), epsilon=1
    )
    widened = protocol.grid_radius * protocol.resolution / radius
    assert 1 <= widened <= Fraction(1001, 1000)
    coarser = 2 * protocol.resolution
    assert (math.ceil(radius / coarser) + changed_entries - 1) * coarser > Fraction(1001, 1000) * radius
    assert not protocol.on_grid


def test_noise_auto_takes_the_law_with_the_smaller_exact_variance():
    # Erratum 10: at (1, 1e-6) Laplace wins for s below 6.7 at distance 0; e^(−s) says 13.8.
    def chosen(transform, delta=1e-6):
        return al.Protocol(transform, epsilon=1, delta=delta).noise

    def graph(sketch_dim, s):
        return al.SparseJL(input_dim=100, sketch_dim=sketch_dim, sparsity=s, seed="x", construction="graph")

    assert [chosen(graph(5040, s)) for s in (1, 6, 7, 9)] == ["laplace", "laplace", "gaussian", "gaussian"]
    assert chosen(graph(4096, 4096), delta=0) == "laplace"
    assert chosen(al.GaussianJL(input_dim=100, sketch_dim=64, seed="x")) == "gaussian"


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
