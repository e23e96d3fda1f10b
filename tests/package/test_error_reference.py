"""The page of all errors: what the source raises today; every message in the house form, every placeholder public."""

import re
from pathlib import Path

import pytest
from error_sites import sites
from write_errors import PAGE, REMEDIES, page

from armslength import errors

ROOT = Path(__file__).parents[2]
SITES = sites()
CLASSES = [
    name for name, kind in vars(errors).items() if isinstance(kind, type) and name != "ArmslengthError"
]

# Where private data is looked at.
PRIVATE_PATH = (
    "protocol/events.py",
    "protocol/inputs.py",
    "protocol/projection.py",
    "protocol/quantize.py",
    "protocol/release.py",
    "protocol/stream.py",
    "protocol/totals.py",
    "protocol/vocabulary.py",
    "randomness/",
    "sklearn/",
    "spark/",
    "tables/",
    "transforms/base.py",
    "transforms/inputs.py",
)
# Every expression that a message on the private path shows, and why it holds no value of the data.
PUBLIC = {
    "types, by their first word alone": """
        kind names shown_kind type(items).__name__ type(name).__name__ type(names).__name__ type(protocol).__name__
        type(session).__name__ type(sketches).__name__ type(source).__name__ shown(type(source).__name__) type_name(X.dtype)
        type_name(array.dtype) type_name(column.type) type_name(fields[name].simpleString()) type_name(found) type_name(items.dtype)
        type_name(kind) type_name(numbers.dtype) type_name(values.dtype) file.kind _condition(problem)""",
    "sizes of an argument, and the position of a column or a line": """
        array.ndim count found items.ndim line len(listed) len(names) len(shape) n_features number shape[1] size
        shown(array.shape)""",
    "what the protocol, the transform or a constant says": """
        at_most input_dim meaning protocol.items protocol.noise_site self._fixed_input_dim()-1 self.name sketch_dim
        transform.input_dim unicodedata.unidata_version width __version__ driver problem.strerror _PROBLEMS[problem] delimiter""",
    "public arguments, in the caller's own words": """
        dtype name near role shown(listed) shown(memory) shown(name) shown(population) shown(public_rows) shown(seed)
        shown(sketch_dim) shown(value) str(seed) where""",
    "names of files, and of the columns of a typed file": """
        file.name printable(str(path)) ','.join(map(repr,names[:20]))or'none'""",
}
# What came is evident where nothing may come, or something must.
EVIDENT = (
    r"must be left out|must be given|must be None for|must be supplied|must be set in|must be public|must be run elsewhere|"
    r"must go with|must say|must list every|must stay in the process"
)
# Answers of the planner, files that cannot be read, two that go on after another message, and what happened to a ledger.
OTHER_FORMS = (
    "cannot be promised: ",
    "cannot be resolved: ",
    "cannot read ",
    "{reason} in {name}",
    "{reason}; ε was charged",
    "the ledger {where} ",
    "{where} is not a ledger: ",
)


def test_page_is_up_to_date():
    assert page() == PAGE.read_text(encoding="utf-8"), (
        "docs/reference/errors.md is out of date: run python docs/write_errors.py"
    )


def test_every_class_says_what_to_do():
    assert sorted(REMEDIES) == sorted(CLASSES)


def test_no_file_is_left_out():
    written = {
        (str(path.relative_to(ROOT / "src" / "armslength")), name)
        for path in (ROOT / "src" / "armslength").rglob("*.py")
        for name in re.findall(r"(?:raise|return|=) (\w+Error)\(", path.read_text(encoding="utf-8"))
        if name in CLASSES
    }
    assert len(written) > 60
    assert written <= {(site.module, site.error) for site in SITES}


@pytest.mark.parametrize("message", sorted({site.message for site in SITES}))
def test_every_message_has_the_house_form(message):
    assert message.isprintable()
    assert not message.endswith((".", "!", " "))
    assert "  " not in message
    assert all(re.fullmatch(r"[\w '−^/·]+", name) for name in re.findall(r"{(.*?)}", message))
    if not message.startswith(OTHER_FORMS):
        assert " must " in message
        assert re.search(rf"[,;] got\b|{EVIDENT}", message)


def test_what_messages_about_private_data_show_is_public():
    known = {name for names in PUBLIC.values() for name in names.split()}
    shown = {
        (re.sub(r"\s", "", expression), site.module)
        for site in SITES
        if site.module.startswith(PRIVATE_PATH)
        for expression in site.shown
    }
    assert {each for each in shown if each[0] not in known} == set()
    assert known - {expression for expression, _ in shown} == set()


def test_a_message_stays_on_its_line():
    assert str(errors.ParameterError("a file\nof two\u2028lines")) == r"a file\nof two\u2028lines"
