"""The frozen vectors: what every party has computed since version 1, and must compute for ever."""

import json

import numpy as np
import pytest

import armslength as al
from armslength.protocol.schema import build_transform
from golden import write
from reference import spec

FILES = sorted(write.FOLDER.glob("*.json"))
STORED = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in FILES}


def test_no_golden_file_is_missing():
    assert set(STORED) == set(write.vectors())


@pytest.mark.parametrize("name", sorted(STORED))
def test_what_is_computed_today_is_what_was_frozen(name):
    assert json.loads(json.dumps(write.vectors()[name])) == STORED[name]


@pytest.mark.parametrize("frozen", STORED["transforms.json"], ids=lambda frozen: frozen["name"])
def test_a_transform_is_built_from_its_frozen_parameters(frozen):
    transform = build_transform(frozen["name"], frozen["parameters"])
    assert write.column(transform, 7) == frozen["column 7"]
    assert write.digest(transform.matrix()) == frozen["sha256"]


SPECIFIED = {
    "SparseJL": lambda p: spec.sparse_jl(
        range(p["input_dim"]), p["sketch_dim"], p["sparsity"], p["independence"], p["seed"], p["construction"]
    ),
    "HadamardJL": lambda p: spec.hadamard_jl(p["input_dim"], p["sketch_dim"], p["seed"]),
    "GaussianJL": lambda p: spec.gaussian_jl(p["input_dim"], p["sketch_dim"], p["seed"]),
    "SignJL": lambda p: spec.sign_jl(p["input_dim"], p["sketch_dim"], p["seed"], p["construction"]),
}


@pytest.mark.parametrize(
    "frozen",
    [f for f in STORED["transforms.json"] if f["name"] in SPECIFIED],
    ids=lambda frozen: frozen["name"],
)
def test_the_second_implementation_gives_the_frozen_matrices(frozen):
    matrix = np.array(SPECIFIED[frozen["name"]](frozen["parameters"]))
    assert write.digest(matrix) == frozen["sha256"]


def test_the_second_implementation_agrees_with_the_frozen_open_vocabulary():
    frozen = STORED["open_vocabulary.json"]
    seed = frozen["parameters"]["seed"]
    for kind in ("strings", "ids"):
        matrix = np.array(spec.sparse_jl(frozen[kind], 64, 4, 16, seed, "block"))
        assert write.digest(matrix) == frozen[f"{kind} sha256"]
        assert (
            write.digest(al.SparseJL(sketch_dim=64, sparsity=4, seed=seed).columns(frozen[kind]))
            == frozen[f"{kind} sha256"]
        )
    graph = np.array(spec.sparse_jl(frozen["strings"], 64, 4, 16, seed, "graph"))
    assert write.digest(graph) == frozen["graph strings sha256"]
