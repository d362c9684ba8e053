"""Texts that people write to each other: bounded, and without marks that change how they look.

Danger: an owner reads such a text beside a button that grants a budget. A control character or a
mark of writing direction could make a page or a terminal show another text than the one sent.
"""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

MOST_CHARACTERS = 2000
#: The marks of Unicode that change the direction of writing (UAX #9). Texts with them are refused,
#: because they may be displayed as other texts.
DIRECTION_MARKS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
#: Categories of Unicode that texts may not contain: control characters, surrogates, and separators
#: of lines and paragraphs.
_REFUSED = frozenset({"Cc", "Cs", "Zl", "Zp"})


def _plain(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    if any(mark in DIRECTION_MARKS for mark in text):
        raise ValueError("it contains a mark that changes the direction of writing")
    if any(unicodedata.category(mark) in _REFUSED for mark in text):
        raise ValueError("it contains a control character or a line break")
    return text


#: A free text in a request: one paragraph of at most 2,000 characters.
PlainText = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS), AfterValidator(_plain)]
