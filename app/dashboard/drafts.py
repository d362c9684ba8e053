"""The draft of a public description, as the fields of the form editor and back.

A draft may be unfinished: what nobody has decided yet is an empty field, and the description has no
such member. The models of the API validate it, so this file refuses only what no form can show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from decimal import Decimal
from typing import Any

from app.contract.descriptions import MAX_ATTRIBUTES
from app.contract.errors import InvalidRequest
from app.dashboard.forms import Form
from app.http import strict_json

KINDS = ("table", "graph", "prefix")
ATTRIBUTE_KINDS = ("categorical", "numeric", "date")
WIDTHS = ("day", "month", "quarter", "year")
#: The members of a description that the form edits as one text each: for every dataset, and for one
#: kind of dataset. Members in ``NUMBERS`` are numbers.
COMMON = ("name", "description", "records_per_person", "minimum_count")
MEMBERS = {
    "table": ("neighbouring", "max_rows", "min_rows", "rows", "person", "class_attribute"),
    "graph": ("nodes.count", "max_degree"),
    "prefix": (),
}
NUMBERS = frozenset({*COMMON[2:], "max_rows", "min_rows", "rows", "nodes.count", "max_degree"})
CAP = ("epsilon", "delta", "composition_delta")


@dataclass(frozen=True)
class AttributeDraft:
    """One attribute as texts. ``values``: one per line. A tick box is "yes" or empty."""

    name: str = ""
    kind: str = "categorical"
    values: str = ""
    is_open: str = ""
    lower: str = ""
    upper: str = ""
    bins: str = ""
    has_missing: str = ""
    missing: str = ""
    clamp: str = ""

    def description(self) -> dict[str, Any]:
        """The attribute as a client writes it; members without a text are absent."""
        described: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if not self.kind:
            return {"name": self.name}
        if self.kind == "categorical":
            described["values"] = "open" if self.is_open else lines(self.values)
        else:
            described["bounds"] = [_value(self, self.lower), _value(self, self.upper)]
            if self.bins:
                described["bins"] = self.bins if self.kind == "date" else _bins(self.bins)
            if self.clamp:
                described["clamp"] = True
        if self.has_missing:
            described["missing"] = self.missing
        return described

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> AttributeDraft:
        """The draft of an attribute that a client wrote; null is an empty field."""
        values, bins = described.get("values"), described.get("bins")
        lower, upper = _pair(described.get("bounds"))
        missing = described.get("missing")
        return cls(
            name=_text(described.get("name")),
            kind=_text(described.get("kind")),
            values="\n".join(map(_text, values)) if isinstance(values, list) else "",
            is_open="yes" if values == "open" else "",
            lower=lower,
            upper=upper,
            bins=", ".join(map(_text, bins)) if isinstance(bins, list) else _text(bins),
            has_missing="" if missing is None else "yes",
            missing=_text(missing),
            clamp="yes" if described.get("clamp") else "",
        )


@dataclass(frozen=True)
class Draft:
    """A description in the making: its kind, the texts of its members, and its attributes."""

    kind: str = "table"
    texts: Mapping[str, str] = field(default_factory=dict)
    attributes: tuple[AttributeDraft, ...] = ()

    @classmethod
    def sent(cls, form: Form) -> Draft:
        """The draft in a submitted form. Raises: InvalidRequest if it has too many attributes."""
        kind = form.get("kind") if form.get("kind") in KINDS else "table"
        names = (*COMMON, *MEMBERS[kind], "public_values", *(f"cap.{name}" for name in CAP))
        texts = {name: form.get(name) for name in (*names, "cap.gaussian")}
        count = form.get("attributes") or "0"
        if not re.fullmatch(r"[0-9]{1,4}", count) or int(count) > MAX_ATTRIBUTES:
            raise InvalidRequest.at(
                "attributes", type="too_long", msg=f"there are at most {MAX_ATTRIBUTES} attributes"
            )
        attributes = tuple(
            AttributeDraft(
                **{one.name: form.get(f"{number}.{one.name}") for one in fields(AttributeDraft)}
            )
            for number in range(int(count))
        )
        return cls(kind, texts, attributes)

    @classmethod
    def read(cls, text: str) -> Draft:
        """The draft in a JSON text, such as ``privypurse describe`` writes with null.

        Raises: InvalidRequest if the text is not JSON, or has a member that the form cannot show.
        """
        encoded = text.encode("utf-8", "surrogatepass")
        strict_json.parse(encoded)
        described = json.loads(encoded)
        try:
            draft = cls._of(described)
        except (AttributeError, TypeError):
            draft = None
        if draft is None or not draft.shows(described):
            raise InvalidRequest.at(
                "description",
                type="not_shown",
                msg="the form does not show all of it: register it as JSON, or mend it there",
            )
        return draft

    @classmethod
    def _of(cls, described: Mapping[str, Any]) -> Draft:
        kind = described["kind"] if described.get("kind") in KINDS else "table"
        texts = {name: _text(described.get(name)) for name in (*COMMON, *MEMBERS[kind])}
        if kind == "graph":
            texts["nodes.count"] = _text((described.get("nodes") or {}).get("count"))
        texts["public_values"] = "\n".join(map(_text, described.get("public_values") or ()))
        cap = described.get("cap") or {}
        texts |= {f"cap.{name}": _text(cap.get(name)) for name in CAP}
        texts["cap.gaussian"] = "yes" if cap.get("gaussian") else ""
        attributes = map(AttributeDraft.of, described.get("attributes") or ())
        return cls(kind, texts, tuple(attributes))

    def shows(self, described: Mapping[str, Any]) -> bool:
        """True if the form holds all of a description, and sends it back unchanged."""
        texts = [*self.texts.values(), *(text for one in self.attributes for text in astuple(one))]
        if any(text != text.strip() for text in texts):
            # The form strips blanks around texts, so it would change this description. The
            # description is therefore not shown in the form, and the owner registers it as JSON.
            return False
        return bool(
            _canonical(self.description()) == _canonical(_fixed(self.kind) | dict(described))
        )

    def text(self, name: str) -> str:
        return self.texts.get(name, "")

    def description(self) -> dict[str, Any]:
        """The description as a client writes it; members without a text are absent."""
        described: dict[str, Any] = {"kind": self.kind, **_fixed(self.kind)}
        for name in (*COMMON, *MEMBERS[self.kind]):
            text = self.text(name)
            if text:
                value = number(text) if name in NUMBERS else text
                described |= {"nodes": {"count": value}} if name == "nodes.count" else {name: value}
        if self.kind == "table":
            described["attributes"] = [one.description() for one in self.attributes]
        if self.kind == "prefix":
            described["public_values"] = [number(one) for one in lines(self.text("public_values"))]
        cap: dict[str, Any] = {
            name: self.text(f"cap.{name}") for name in CAP if self.text(f"cap.{name}")
        }
        if self.text("cap.gaussian"):
            cap["gaussian"] = True
        return {**described, "cap": cap}


def code_book(text: str) -> tuple[AttributeDraft, ...]:
    """The attributes in the lines of a code book. Raises: InvalidRequest with the line's number.

    ``sex: Female | Male`` is a list of values, ``age: 0 to 120`` a number within bounds, and
    ``seen: 2020-01-01 to 2024-12-31`` a date.
    """
    attributes = []
    for place, line in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        if not line.strip():
            continue
        name, colon, rest = (part.strip() for part in line.partition(":"))
        if not colon or not name or not rest:
            raise InvalidRequest.at(
                "code book",
                f"line {place}",
                type="code_book",
                msg="name: value | value is expected",
            )
        attributes.append(_coded(name, rest))
    return tuple(attributes)


def _coded(name: str, rest: str) -> AttributeDraft:
    bounds = re.fullmatch(r"(\S+)\s+to\s+(\S+)", rest)
    if bounds:
        lower, upper = bounds.groups()
        if all(re.fullmatch(r"\d{4}-\d\d-\d\d", one) for one in (lower, upper)):
            return AttributeDraft(name, "date", lower=lower, upper=upper)
        if all(not isinstance(number(one), str) for one in (lower, upper)):
            return AttributeDraft(name, "numeric", lower=lower, upper=upper)
    return AttributeDraft(name, values="\n".join(one.strip() for one in rest.split("|")))


def lines(text: str) -> list[str]:
    """The lines of a text field without surrounding blanks; empty lines are left out."""
    return [line.strip() for line in re.split(r"\r\n|\r|\n", text) if line.strip()]


def number(text: str) -> int | float | str:
    """The number in a text; another text stays what it is, for the model to refuse."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else text


def _fixed(kind: str) -> dict[str, str]:
    """The members with only one value for this kind of dataset."""
    return {} if kind == "table" else {"neighbouring": {"graph": "edge"}.get(kind, kind)}


def _value(attribute: AttributeDraft, text: str) -> Any:
    if not text:
        return None
    return number(text) if attribute.kind == "numeric" else text


def _bins(text: str) -> Any:
    parts = [number(one.strip()) for one in text.split(",")]
    return parts if len(parts) > 1 else parts[0]


def _pair(bounds: Any) -> tuple[str, str]:
    lower, upper = bounds if isinstance(bounds, list) and len(bounds) == 2 else (None, None)
    return _text(lower), _text(upper)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _canonical(value: Any) -> Any:
    """The value without empty members; equal numbers, such as 1 and 1.0, become equal texts."""
    if isinstance(value, Mapping):
        members = {name: _canonical(one) for name, one in value.items()}
        return {name: one for name, one in members.items() if one not in (None, False, "", [], {})}
    if isinstance(value, list):
        values = [_canonical(one) for one in value]
        return None if set(map(repr, values)) == {"None"} else values
    if isinstance(value, bool):
        return value
    try:
        return str(Decimal(str(value)).normalize())
    except ArithmeticError:
        return value
