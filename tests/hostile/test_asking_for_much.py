"""Small files that ask for much: matrices of any size, many protocols, all refused or made once."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import armslength as al
from armslength.cli.main import main
from armslength.errors import CorruptFileError
from armslength.protocol import protocol as documents
from armslength.randomness.seeds import Stream
from armslength.sketches.sketch_format import KEY
from costly import LIMITS, document_of
from sealed import write_sealed


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "sketches.parquet"
    protocol = al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"), epsilon=1)
    al.release(protocol, np.zeros((2, 6), dtype=int), ledger=al.NO_LEDGER).save(path)
    return path


def with_protocols(path, protocols):
    """Writes the file again with other protocols in its head."""
    table = pq.read_table(path)
    head = json.loads(table.schema.metadata[KEY])
    head["protocols"] = [protocol.document() for protocol in protocols]
    text = json.dumps(head)
    pq.write_table(
        table.replace_schema_metadata({KEY: text}),
        path,
        use_dictionary=False,
        write_statistics=False,
    )


def test_the_transform_of_a_hundred_protocols_is_built_once(path, monkeypatch):
    transform, nothing = (
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"),
        np.zeros((1, 6), dtype=int),
    )
    protocols = [al.Protocol(transform, epsilon=number) for number in range(1, 101)]
    al.concat([al.release(each, nothing, ledger=al.NO_LEDGER) for each in protocols]).save(path)
    built, build = [], documents.schema.read_transform
    monkeypatch.setattr(documents.schema, "read_transform", lambda text: built.append(1) or build(text))
    loaded = al.load(path)
    assert len(loaded.protocols) == 100
    assert built == [1]
    assert len({id(protocol.transform) for protocol in loaded.protocols}) == 1


def test_other_transforms_in_one_file_are_refused_before_they_are_scanned(path, monkeypatch):
    with_protocols(
        path,
        [
            al.Protocol(al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed=seed), epsilon=1)
            for seed in ("x", "y")
        ],
    )
    built, build = [], documents.schema.read_transform
    monkeypatch.setattr(documents.schema, "read_transform", lambda text: built.append(1) or build(text))
    with pytest.raises(al.IncompatibleSketchesError, match="different transforms"):
        al.load(path)
    assert built == []


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"density": (1.0).hex(), "input_dim": 2**17, "sketch_dim": 2**9}, "must be at most 2\\^25"),
        ({"density": (1.0).hex(), "input_dim": 2**13, "sketch_dim": 2**13}, "must be at most 2\\^25"),
        ({"input_dim": 2**25 + 1}, "input_dim must be an integer from 1 to 33554432"),
        ({"sketch_dim": 2**24, "input_dim": 2**20}, "must be at most 2\\^26"),
    ],
)
def test_a_protocol_cannot_ask_for_a_matrix_that_does_not_fit(changes, match):
    document = al.Protocol(al.FastJL(input_dim=6, sketch_dim=8, seed="x"), epsilon=1).document()
    document["transform"]["parameters"] |= changes
    with pytest.raises(CorruptFileError, match=match):
        al.Protocol.from_document(document)


def test_a_fast_transform_at_the_limit_is_scanned_by_one_thread(monkeypatch):
    """Every thread holds rows of its own: on many cores they would take more than there is."""
    from armslength.transforms import hadamard_jl  # noqa: PLC0415  # its module, of which the package shows the class

    seen = []
    monkeypatch.setattr(hadamard_jl, "available_threads", lambda: 64)
    monkeypatch.setattr(hadamard_jl, "_SCANNED_BYTES", 24 * 64 * 3)
    scan = hadamard_jl.for_blocks
    monkeypatch.setattr(hadamard_jl, "for_blocks", lambda *given: seen.append(given[3]) or scan(*given))
    al.Protocol(al.FastJL(input_dim=64, sketch_dim=8, seed="x"), epsilon=1)
    al.Protocol(al.FastJL(input_dim=256, sketch_dim=8, seed="x"), epsilon=1)
    assert seen == [3, 1]


@pytest.fixture
def computing_fails(monkeypatch):
    """From when it is called on, nothing is drawn from a seed, and no protocol is made."""

    def reached(*_, **__):
        raise AssertionError("something was computed")

    def start(*, protocols=True):
        monkeypatch.setattr(Stream, "words", reached)
        if protocols:
            monkeypatch.setattr(al.Protocol, "__init__", reached)

    return start


@pytest.mark.parametrize("name", LIMITS)
def test_more_than_seconds_of_work_is_refused_before_any_is_done(name, computing_fails):
    above = document_of(name, times=2)
    computing_fails(protocols=not LIMITS[name][3])  # where the noise goes is checked when a protocol is made
    with pytest.raises(CorruptFileError, match=f"{LIMITS[name][2]}|sparsity|density"):
        al.Protocol.from_document(above)


@pytest.mark.parametrize("name", LIMITS)
def test_a_protocol_at_the_limit_may_be_made(name):
    kind, sizes, _, fields = LIMITS[name]
    assert kind(**sizes, seed="x").input_dim == sizes["input_dim"]
    if fields:
        kind(**sizes, seed="x").check_noise_on_input()


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A sketch file and a protocol of a few kilobytes that ask for minutes."""
    monkeypatch.chdir(tmp_path)
    protocol = al.Protocol(
        al.GaussianJL(input_dim=64, sketch_dim=64, seed="x"), epsilon=1, delta=1e-6, noise="gaussian"
    )
    al.release(protocol, np.zeros((2, 64), dtype=int), ledger=al.NO_LEDGER, labels=["a", "b"]).save(
        "s.parquet"
    )
    table = pq.read_table("s.parquet")
    head = json.loads(table.schema.metadata[KEY])
    head["protocols"][0]["transform"]["parameters"]["input_dim"] = 2**28
    write_sealed(table, "s.parquet", head=head)
    (tmp_path / "p.json").write_text(json.dumps(head["protocols"][0]))
    (tmp_path / "events.csv").write_text("person,item\n1,2\n")
    assert (tmp_path / "s.parquet").stat().st_size < 16_384
    return tmp_path


@pytest.mark.parametrize("read", [al.load, lambda path: al.load([path, path])])
def test_a_small_sketch_file_cannot_ask_for_minutes(read, hostile, computing_fails):
    computing_fails()
    with pytest.raises(CorruptFileError, match="at most"):
        read(hostile / "s.parquet")


def test_verify_says_that_such_a_file_fails(hostile, computing_fails):
    computing_fails()
    found = al.verify(hostile / "s.parquet")
    assert not found.holds
    assert "at most" in found.checks[0].words


@pytest.mark.parametrize(
    "command",
    [
        "show s.parquet",
        "show .",
        "verify s.parquet",
        "verify s.parquet --protocol p.json",
        "show --card s.parquet",
        "show --card p.json",
        "compare s.parquet",
        "report s.parquet -o r.html",
        "cluster s.parquet",
        "outliers s.parquet",
        "explain s.parquet a b",
        "drift s.parquet s.parquet",
        "show p.json",
        "release events.csv --protocol p.json --person person --item item --label a --no-ledger -o o.parquet",
    ],
)
def test_no_command_does_what_such_a_file_asks_for(command, hostile, computing_fails):
    computing_fails()
    if command == "show .":
        for name in ("p.json", "events.csv"):
            (hostile / name).unlink()
    result = CliRunner().invoke(main, command.split())
    assert result.exit_code == 5
    assert "must be at most 2^26" in " ".join(result.output.split())


def test_files_of_one_call_share_their_transform(tmp_path):
    """Another protocol with the same transform costs its calibration alone."""
    paths = [tmp_path / name for name in ("a", "b")]
    for path, epsilon in zip(paths, (1, 2), strict=True):
        transform = al.GaussianJL(input_dim=64, sketch_dim=16, seed="x")
        protocol = al.Protocol(transform, epsilon=epsilon)
        al.release(protocol, np.zeros((1, 64), dtype=int), ledger=al.NO_LEDGER, labels=[path.name]).save(path)
    first, second = al.load(paths).protocols
    assert first.transform is second.transform
