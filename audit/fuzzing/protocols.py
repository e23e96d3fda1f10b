"""Protocols: JSON of any bytes, and valid documents with their fields changed."""

import json

import armslength as al
from audit.fuzzing.mutate import change_json, change_text
from audit.fuzzing.verdicts import Finding, Target
from audit.fuzzing.workspace import small_matrices, written
from costly import LIMITS, document_of


def _seeds() -> list[bytes]:
    transforms = (
        al.SparseJL(input_dim=6, sketch_dim=8, sparsity=2, seed="x"),
        al.SparseJL(sketch_dim=8, sparsity=1, seed="x", construction="graph"),
        al.SparseJL(input_dim=60, sketch_dim=8, sparsity=4, seed="x", construction="balanced"),
        al.HadamardJL(input_dim=6, sketch_dim=8, seed="x"),
        al.FastJL(input_dim=6, sketch_dim=8, seed="x"),
        al.GaussianJL(input_dim=6, sketch_dim=8, seed="x"),
        al.SignJL(input_dim=6, sketch_dim=8, seed="x", construction="sparse"),
        al.Identity(input_dim=6),
    )
    protocols = [al.Protocol(transform, epsilon=1) for transform in transforms]
    first = transforms[0]
    protocols += [
        al.Protocol(
            first, al.Counts(3, total_share="0.25"), epsilon="0.1", relation="replace", unit="one patient"
        ),
        al.Protocol(first, al.Votes(total_share="0.1", spread_sample="0.5"), epsilon=1),
        al.Protocol(
            transforms[1],
            al.Votes(
                total_share="0.1",
                item_groups=al.ItemGroups({"prefix": ["a", "b"], "group": ["A", "B"]}, share="0.3", limit=1),
            ),
            epsilon=1,
        ),
        al.Protocol(first, al.Arrays(radius=2, value_range=(0, 5)), epsilon=1, delta=1e-6, noise="gaussian"),
        al.Protocol(first, al.Arrays(resolution=0.25, on_grid=False, changed_entries=3), epsilon="1/3"),
        al.Protocol(transforms[4], epsilon=1, delta=1e-6, noise="gaussian", noise_site="input"),
        al.Protocol(
            al.SparseJL(input_dim=2, sketch_dim=8, sparsity=2, seed="x"), epsilon=1, vocabulary=["a", "b"]
        ),
    ]
    documents = [protocol.document() for protocol in protocols]
    return [json.dumps(document).encode() for document in documents]


def _costly() -> list[bytes]:
    """Protocols of the largest sizes, and of larger ones."""
    return [json.dumps(document_of(name, times=times)).encode() for name in LIMITS for times in (1, 2)]


def _read(data: bytes) -> str:
    with small_matrices():
        protocol = al.Protocol.load(written("protocol.json", data))
        again = al.Protocol.from_document(json.loads(json.dumps(protocol.document())))
    if again != protocol or again.fingerprint != protocol.fingerprint:
        raise Finding("a protocol that was accepted is another one when it is read again")
    if not protocol.law.scale > 0:
        raise Finding("a protocol without noise was accepted")
    return "accepted"


TARGETS = (
    Target("protocols", "protocol, bytes", _seeds, _read, change_text, 120_000, _costly),
    Target("protocols", "protocol, fields", _seeds, _read, change_json, 240_000, _costly),
)
