"""Commands as they are typed."""

import shlex

from click.testing import CliRunner

from armslength.cli.main import main


def run(first, *rest, **known):
    """The result of a command: one line of text, or its words."""
    words = (first, *rest) if rest else shlex.split(first)
    return CliRunner().invoke(main, [str(word) for word in words], **known)
