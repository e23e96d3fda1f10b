"""Bad arguments: one clear line each, whatever comes."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import armslength as al
from armslength.protocol.schema import build_transform

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.lists(st.integers(), max_size=3),
    st.complex_numbers(),
    st.just(np.nan),
    st.just(np.array([1, 2])),
    st.just(object()),
    st.decimals(),
)


def one_clear_line(error):
    message = str(error)
    assert isinstance(error, al.ArmslengthError)
    assert message
    assert "\n" not in message
    assert len(message) < 300


def refuses_or_works(build):
    """The call either works or explains itself; nothing else may come out."""
    try:
        build()
    except al.ArmslengthError as error:
        one_clear_line(error)


@given(JUNK, JUNK, JUNK, JUNK, JUNK, JUNK)
def test_sparse_jl_refuses_junk(d, k, s, seed, construction, t):
    known = {"input_dim": 10, "sketch_dim": 12, "sparsity": 3, "seed": "x", "independence": 16}
    for junk in (
        {"input_dim": d},
        {"sketch_dim": k, "sparsity": 1},
        {"sparsity": s},
        {"seed": seed},
        {"construction": construction},
        {"independence": t},
    ):
        refuses_or_works(lambda junk=junk: al.SparseJL(**{**known, **junk}))


@given(JUNK, JUNK, JUNK, JUNK)
def test_other_transforms_refuse_junk(d, k, seed, last):
    for transform in (al.HadamardJL, al.GaussianJL, al.SignJL, al.FastJL):
        refuses_or_works(lambda t=transform: t(input_dim=d, sketch_dim=1, seed="x"))
        refuses_or_works(lambda t=transform: t(input_dim=10, sketch_dim=k, seed="x"))
        refuses_or_works(lambda t=transform: t(input_dim=10, sketch_dim=4, seed=seed))
    refuses_or_works(lambda: al.FastJL(input_dim=10, sketch_dim=4, seed="x", density=last))
    refuses_or_works(lambda: al.SignJL(input_dim=10, sketch_dim=4, seed="x", construction=last))
    refuses_or_works(lambda: al.Identity(input_dim=d))


@given(JUNK)
def test_apply_columns_and_threads_refuse_junk(junk):
    fixed, vocabulary = al.SparseJL(input_dim=3, sketch_dim=4, seed="x"), al.SparseJL(sketch_dim=4, seed="x")
    refuses_or_works(lambda: fixed.apply(junk))
    refuses_or_works(lambda: fixed.columns(junk))
    refuses_or_works(lambda: vocabulary.columns(junk))
    refuses_or_works(lambda: vocabulary.apply([[1]], items=junk))
    refuses_or_works(lambda: fixed.apply([[1, 2, 3]], threads=junk))


@given(st.text(), st.dictionaries(st.text(max_size=9), JUNK, max_size=3))
def test_registry_refuses_junk(name, parameters):
    refuses_or_works(lambda: build_transform(name, parameters))
    refuses_or_works(lambda: build_transform("SparseJL", parameters))


def sparse_jl(**changes):
    return al.SparseJL(**{"input_dim": 10, "sketch_dim": 64, "seed": "x", **changes})


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: sparse_jl(sparsity=7), "sparsity"),
        (lambda: sparse_jl(input_dim=-3), "input_dim"),
        (lambda: sparse_jl(seed=7), "try seed='7'"),
        (lambda: sparse_jl(seed="\ud800"), "lone surrogate"),
        (lambda: sparse_jl(seed="\u0378"), "characters assigned"),
        (lambda: sparse_jl(input_dim=None, construction="balanced"), "fixed input_dim"),
        (lambda: sparse_jl(independence=3), "independence"),
        (lambda: al.HadamardJL(input_dim=10, sketch_dim=17, seed="x"), "sketch_dim must be at most 16"),
        (lambda: al.FastJL(input_dim=10, sketch_dim=4, seed="x", density=math.nan), "density"),
        (lambda: sparse_jl(input_dim=None).matrix(), "open vocabulary"),
        (lambda: sparse_jl(input_dim=None).apply([[1]]), "needs items"),
        (lambda: sparse_jl(input_dim=1).apply([[1]], items=["a"]), "input_dim is fixed"),
    ],
)
def test_bad_parameters_say_what_to_do(build, says):
    with pytest.raises(al.ParameterError) as caught:
        build()
    one_clear_line(caught.value)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("X", "says"),
    [
        ([[0.5, 1.0, 2.0]], "X must hold integers, got float64"),
        ([1, 2, 3], "2 dimensions"),
        ([[1, 2]], "3 columns"),
        (sparse.csr_array(np.array([[0.5, 0, 0]])), "X must hold integers"),
    ],
)
def test_bad_input_never_shows_its_values(X, says):
    for transform in (
        al.SparseJL(input_dim=3, sketch_dim=4, seed="x"),
        al.HadamardJL(input_dim=3, sketch_dim=4, seed="x"),
        al.GaussianJL(input_dim=3, sketch_dim=4, seed="x"),
        al.Identity(input_dim=3),
    ):
        with pytest.raises(al.InputError) as caught:
            transform.apply(X)
        one_clear_line(caught.value)
        assert says in str(caught.value)
        assert "0.5" not in str(caught.value)


def damaged():
    """Sparse matrices whose indices do not fit; some of them ended the process once."""
    for name, make in {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}.items():
        for broken in ([0, 1, 10**8], [0, 1, -1]):
            matrix = make(np.eye(3, dtype=int))
            matrix.indices = np.array(broken, dtype=np.int32)
            yield f"{name} {broken}", matrix
        matrix = make(np.eye(3, dtype=int))
        matrix.indptr = np.array([0, 2, 1, 3], dtype=np.int32)
        yield f"{name} starts", matrix
        matrix = make(np.eye(3, dtype=int))
        matrix.indptr = np.array([0, 1], dtype=np.int32)
        yield f"{name} short", matrix
    matrix = sparse.coo_array(np.eye(3, dtype=int))
    matrix.coords = (np.array([0, 1, 2]), np.array([0, 1, 99]))
    yield "coo", matrix


DAMAGED = dict(damaged())


@pytest.mark.parametrize("kind", list(DAMAGED))
def test_a_damaged_sparse_matrix_is_refused(kind):
    with pytest.raises(al.InputError, match="do not fit its shape"):
        al.SparseJL(input_dim=3, sketch_dim=4, seed="x").apply(DAMAGED[kind])


@pytest.mark.parametrize("use", ["apply", "columns"])
def test_masks_and_ragged_lists_are_never_dropped_in_silence(use):
    transform = al.SparseJL(input_dim=3, sketch_dim=4, seed="x")
    for bad, says in (
        (np.ma.array([[1, 2, 3]], mask=[[0, 1, 0]]), "masked"),
        ([[1], [1, 2]], "array of numbers"),
    ):
        with pytest.raises(al.InputError, match=says) as caught:
            getattr(transform, use)(bad)
        one_clear_line(caught.value)


@given(JUNK, JUNK)
def test_norm_variance_refuses_junk(l2, l4):
    transform = al.SparseJL(input_dim=3, sketch_dim=4, seed="x")
    refuses_or_works(lambda: transform.norm_variance(l2))
    refuses_or_works(lambda: transform.norm_variance(5.0, l4))


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64, np.float32, int, float])
def test_norm_variance_cannot_wrap(kind):
    # (z**2).sum() is a NumPy integer, and its square would wrap.
    size = 4_000_000_000 if kind not in (np.int32, np.float32) else 50_000
    assert al.SparseJL(input_dim=3, sketch_dim=4, seed="x").norm_variance(kind(size)) == pytest.approx(
        2 / 4 * float(size) ** 2
    )
    assert al.SparseJL(input_dim=3, sketch_dim=4, seed="x").norm_variance(kind(size), kind(size)) > 0


FROM_DOCUMENTS = [
    al.SparseJL(input_dim=10, sketch_dim=4, seed="x"),
    al.FastJL(input_dim=10, sketch_dim=4, seed="x"),
    al.SignJL(input_dim=10, sketch_dim=4, seed="x"),
    al.Identity(input_dim=4),
]


@pytest.mark.parametrize("transform", FROM_DOCUMENTS, ids=lambda t: t.name)
@given(data=st.data())
def test_one_bad_value_in_valid_parameters(transform, data):
    parameters = dict(transform.parameters())
    name = data.draw(st.sampled_from(sorted(parameters)))
    parameters[name] = data.draw(JUNK)
    try:
        built = build_transform(transform.name, parameters)
    except al.ArmslengthError as error:
        one_clear_line(error)
    else:
        # What is accepted is one of the values that the class itself would have written.
        assert build_transform(built.name, built.parameters()) == built


@pytest.mark.parametrize("bad", [None, [], {"x": 1}, {1: 2, "a": 3}])
def test_parameters_are_those_of_the_transform(bad):
    with pytest.raises(al.ParameterError, match="needs the parameters"):
        build_transform("SparseJL", bad)


def test_transforms_cannot_be_changed_and_travel_without_their_caches():
    for transform in (*FROM_DOCUMENTS, al.GaussianJL(input_dim=1000, sketch_dim=100, seed="x")):
        with pytest.raises(AttributeError):
            transform.seed = "y"
        transform.apply(np.zeros((1, transform.input_dim), dtype=int))
        packed = pickle.dumps(transform)
        assert len(packed) < 2000
        assert pickle.loads(packed) == transform  # noqa: S301  # our own bytes


@pytest.mark.parametrize("seed", ["two\nlines", "tab\t", "\x00"])
def test_seeds_are_one_printable_line(seed):
    with pytest.raises(al.ParameterError, match="printable"):
        al.SparseJL(input_dim=10, sketch_dim=4, seed=seed)


def test_numpy_strings_become_plain_ones():
    transform = al.SparseJL(input_dim=10, sketch_dim=4, seed=np.str_("x"), construction=np.str_("graph"))
    assert type(transform.seed) is str
    assert type(transform.construction) is str


@pytest.mark.parametrize(
    "build",
    [
        lambda: al.SparseJL(input_dim=10, sketch_dim=10**5000, seed="x"),
        lambda: al.FastJL(input_dim=10, sketch_dim=4, seed="x", density=np.timedelta64(1)),
        lambda: al.HadamardJL(input_dim=2**40, sketch_dim=4, seed="x"),
        lambda: al.SparseJL(input_dim=2**40, sketch_dim=4, seed="x", construction="balanced"),
    ],
)
def test_absurd_numbers_get_a_clear_line(build):
    with pytest.raises(al.ParameterError) as caught:
        build()
    one_clear_line(caught.value)


def test_an_open_vocabulary_of_nothing():
    assert (
        al.SparseJL(sketch_dim=4, seed="x").apply(np.zeros((2, 0), dtype=int), items=[]).tolist()
        == [[0] * 4] * 2
    )


@pytest.mark.parametrize(
    ("items", "says"),
    [
        (["a", 1], "all strings or all integers"),
        ("abc", "got str"),
        (np.array("abc"), "0 dimensions"),
        (np.array([1], dtype="timedelta64[ns]"), "timedelta64"),
        (np.ma.array([1, 2], mask=[0, 1]), "MaskedArray"),
        ({1, 2}, "got set"),
        ([2**63], "fit int64"),
        (np.array([2**64 - 1], dtype=np.uint64), "fit int64"),
        (["secret\ud800"], "lone surrogate"),
        (["secret\u0378"], "characters assigned"),
        (np.array([["a"]]), "2 dimensions"),
    ],
)
def test_bad_items_say_what_to_do_and_stay_private(items, says):
    with pytest.raises(al.InputError) as caught:
        al.SparseJL(sketch_dim=4, seed="x").columns(items)
    one_clear_line(caught.value)
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


def test_cards_are_for_people():
    for transform in (
        al.SparseJL(input_dim=10, sketch_dim=4, seed="trial"),
        al.SparseJL(sketch_dim=4, seed="trial"),
    ):
        card = transform.card()
        assert transform.name in card
        assert "sensitivity" in card
    assert "open vocabulary" in al.SparseJL(sketch_dim=4, seed="trial").card()


@pytest.mark.parametrize("starts", [[0, 2, 5, 8, 0], [0, 2, 1, 8, 8], [1, 2, 5, 8, 8], [0, 2, 5, 8, 12]])
@pytest.mark.parametrize("build", [sparse.csr_array, sparse.csc_array])
def test_sparse_matrices_whose_starts_fall_do_not_end_the_process(build, starts):
    whole = build(
        (np.arange(1, 9), np.arange(8) % 3, [0, 2, 5, 8, 8]),
        shape=(4, 3)[:: 1 if build is sparse.csr_array else -1],
    )
    whole.indptr = np.array(starts)
    for _ in range(20):
        with pytest.raises(ValueError, match="do not fit its shape"):
            al.SparseJL(input_dim=whole.shape[1], sketch_dim=2, seed="x").apply(whole)
