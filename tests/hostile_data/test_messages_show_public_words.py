"""What messages on the private path show is public: every expression in them is listed here with its reason."""

import re

from armslength import errors
from hostile_data.error_sites import SOURCE, sites

# Where private data is looked at.
PRIVATE_PATH = (
    "ingest/",
    "release/",
    "protocol/protocol.py",
    "randomness/",
    "sklearn.py",
    "spark/",
    "transforms/transform.py",
    "transforms/integer_rows.py",
)
# Every expression that a message on the private path shows, and why it holds no value of the data; with its file where the name alone says little.
PUBLIC = {
    "types, by their first word alone": """
        kind names type(items).__name__ type(name).__name__ type(problem).__name__ type(protocol).__name__
        type(session).__name__ type(sketches).__name__ type(table).__name__ short_repr(type(source).__name__) type_name(X.dtype)
        type_name(array.dtype) type_name(column.type) type_name(column_type) type_name(fields[name].simpleString()) type_name(value_type) type_name(items.dtype)
        type_name(kind) type_name(numbers.dtype) type_name(values.dtype) self.kind _condition(problem)""",
    "sizes of an argument, and the position of a column or a line": """
        count items.ndim line len(listed) len(names) len(shape) number shape[1] size
        short_repr(array.shape)""",
    "what the protocol, the transform or a constant says": """
        at_most input_dim protocol.items protocol.noise_site transforms/transform.py:last self.name sketch_dim
        transform.input_dim unicodedata.unidata_version width __version__ driver problem.strerror _PROBLEMS[problem] delimiter
        ingest/sources.py:stores ingest/sources.py:scheme ingest/databases.py:self.scheme
        ','.join(_FUNCTIONS) 'and'.join(roles) sklearn.py:message
        ','.join(sorted(expected)) short_repr(transform.sketch_dim) self.noise_sites transforms/transform.py:site transforms/transform.py:cls.name""",
    "public arguments, in the caller's own words": """
        name near role short_repr(level) short_repr(listed) short_repr(memory) short_repr(name) short_repr(partitions)
        short_repr(seed) short_repr(sketch_dim) short_repr(value) str(seed) where
        short_repr(mark) short_repr(self.encoding) short_repr(self.format) ingest/event_files.py:self.encoding""",
    "arguments and fields of a protocol, which is fixed before any data is seen": """
        protocol/protocol.py:','.join(differing) protocol/protocol.py:noise short_repr(count) short_repr(distance)
        protocol/protocol.py:short_repr(items) short_repr(noise) short_repr(noise_site) short_repr(on_grid) short_repr(one_group) short_repr(radius)
        short_repr(relation) short_repr(transform) protocol/protocol.py:transform.name""",
    "why a text is not canonical, in the words of randomness/seeds.py, which are looked at too": """
        randomness/hashing.py:problem randomness/seeds.py:problem""",
    "names of files, and of the columns of a typed file": """
        file.name self._file.name ','.join(map(repr,names[:20]))or'none'""",
}


def test_no_error_is_overlooked():
    written = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r"(?:raise|return|=) (\w+Error)\(", path.read_text(encoding="utf-8"))
        if path.relative_to(SOURCE).as_posix().startswith(PRIVATE_PATH)
    }
    assert len(written) > 20
    own = {("ingest/partitions.py", "_TooManyEventsError")}  # is caught where it is raised, and has no words
    assert written - own <= {(site.module, site.error) for site in sites(PRIVATE_PATH)}


def test_what_messages_about_private_data_show_is_public():
    known = {name for names in PUBLIC.values() for name in names.split()}
    shown = {(expression, site.module) for site in sites(PRIVATE_PATH) for expression in site.shown}
    names = {(expression, f"{module}:{expression}") for expression, module in shown}
    assert {each for each in names if not known & set(each)} == set()
    assert known - {name for each in names for name in each} == set()


def test_a_message_stays_on_its_line():
    assert str(errors.ParameterError("a file\nof two\u2028lines")) == r"a file\nof two\u2028lines"
