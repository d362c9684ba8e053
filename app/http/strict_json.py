"""A strict parser of JSON: it accepts texts of RFC 8259 only, and refuses ambiguous ones.

Common parsers accept NaN, Infinity, 1e999 (as infinity), repeated names (the last one wins), half
surrogate pairs, and nesting that exhausts a stack. Each of these either crashes a reply or lets
two parsers read the same body differently, so this parser refuses each.
"""

import json
import math
from typing import Any, NoReturn

from app.contract.errors import InvalidRequest

#: The deepest nesting of arrays and objects. A where clause of depth 8 needs 20.
MAX_DEPTH = 64
#: The most arrays and objects of one body. In memory, each takes thirty times the bytes of its
#: text.
MAX_CONTAINERS = 1_000_000
#: The most characters of one integer. No valid value needs more, and the conversion of longer ones
#: would be slow.
MAX_DIGITS = 400


class _Refused(ValueError):
    """The hooks of the parser raise this; the text names the fault."""


def parse(body: bytes) -> Any:
    """The JSON value of ``body``. Raises InvalidRequest, whose text never repeats the body."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise _invalid("the body is not UTF-8") from None
    if text.count("[") + text.count("{") > MAX_CONTAINERS:
        raise _invalid(f"more than {MAX_CONTAINERS} arrays and objects")
    try:
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_integer,
            object_pairs_hook=_distinct,
        )
    except _Refused as refusal:
        raise _invalid(str(refusal)) from None
    except json.JSONDecodeError as error:
        raise _invalid(f"not JSON, at character {error.pos}") from None
    except RecursionError:
        raise _invalid(f"nested deeper than {MAX_DEPTH}") from None
    _check_texts_and_depth(value)
    return value


def _invalid(msg: str) -> InvalidRequest:
    return InvalidRequest.at("body", type="json_invalid", msg=msg)


def _no_constant(_: str) -> NoReturn:
    raise _Refused("NaN and Infinity are not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused("a number is out of range")
    return value


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise _Refused("a number is out of range")
    return int(text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _Refused("a name is repeated in an object")
    return fields


def _check_texts_and_depth(value: Any) -> None:
    level: list[Any] = [value]
    depth = 0
    while level:
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, (dict, list)):
                if depth == MAX_DEPTH:
                    raise _invalid(f"nested deeper than {MAX_DEPTH}")
                if isinstance(item, dict):
                    below.extend(item.keys())
                below.extend(item.values() if isinstance(item, dict) else item)
        level, depth = below, depth + 1


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _invalid("a text contains half of a surrogate pair") from None
    # Some databases end a text at U+0000 and others refuse it, so no text may contain it.
    if "\0" in text:
        raise _invalid("a text contains the character U+0000")
