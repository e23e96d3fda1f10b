"""Text into HTML: escaped by default, labels isolated from the direction of the text around them."""

import html
import re
from collections.abc import Mapping

_FIELD = re.compile(r"\{\{(\w+)\}\}")


def escaped(text: str) -> str:
    """Text as it stands between tags and in quoted attributes."""
    return html.escape(text, quote=True)


def name(label: str) -> str:
    """A party's label: its own direction of writing, whatever stands around it."""
    return f"<bdi>{escaped(label)}</bdi>"


def filled(template: str, fields: Mapping[str, str]) -> str:
    """The template with its fields, which must be markup already. What a field holds is not looked at again."""
    return _FIELD.sub(lambda found: fields[found[1]], template)


def section(identifier: str, heading: str, *parts: str, classes: str = "") -> str:
    """A section with its heading, which names it for assistive technology."""
    kind = f' class="{classes}"' if classes else ""
    body = "\n".join(part for part in parts if part)
    return (
        f'<section id="{identifier}" aria-labelledby="{identifier}-heading"{kind}>\n'
        f'<h2 id="{identifier}-heading">{heading}</h2>\n{body}\n</section>'
    )
