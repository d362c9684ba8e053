"""Turns the JSON schema of a parameter into a form control, and its text back into a value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.contract.datasets import Facts
from app.contract.errors import InvalidRequest
from app.dashboard.forms import Form
from app.queries.parts.form import FormField, Option

#: Parameters of queries whose value is the name of one attribute; the form offers the attributes in
#: a list.
ONE_ATTRIBUTE = frozenset({"attribute", "class_attribute", "target", "values_of"})
#: The most check boxes for the values of one attribute. Further values can be typed as JSON.
MOST_OPTIONS = 500
#: The choice "by default" of an optional parameter: the request omits the parameter.
BY_DEFAULT = Option("", "by default")
#: The words with which an error message names the required value, by the JSON type of the field.
REQUIRED = {"integer": "a whole number", "number": "a number", "boolean": "yes or no"}


@dataclass(frozen=True)
class Control:
    """One field of the form; ``values`` are its current texts."""

    name: str
    control: Literal[
        "choice", "number", "text", "names", "json", "utilities", "where", "groups", "measures"
    ]
    label: str
    help: str = ""
    required: bool = False
    options: tuple[Option, ...] = ()
    values: tuple[str, ...] = ()
    type: str = "string"
    least: float | None = None
    most: float | None = None
    weights: Mapping[str, str] = field(default_factory=dict)
    #: The page folds all controls of one group together under this title.
    group: str = ""

    @property
    def value(self) -> str:
        return self.values[0] if self.values else ""

    @property
    def id(self) -> str:
        return "f-" + self.name.replace(".", "-")


def plain_control(parameter: FormField, facts: Facts, texts: Form) -> Control:
    """The control of one parameter, by its schema."""
    name, schema, required = parameter.name, parameter.schema, parameter.required
    short = name.rpartition(".")[2]
    form = _resolved(schema, parameter.definitions)
    default = schema.get("default", form.get("default"))
    default_text = "" if default is None else _text(default)
    common: dict[str, Any] = {
        "name": name,
        "label": short.replace("_", " ").capitalize(),
        "help": str(schema.get("description", form.get("description", ""))).replace("`", ""),
        "required": required,
        "group": parameter.group,
        "values": tuple(texts.all(name)) or ((default_text,) if default_text else ()),
    }
    if "enum" in form and "$ref" in schema:
        common["help"] = ""
    if short in ONE_ATTRIBUTE:
        options = _attribute_options(facts, required, numeric=short == "attribute")
        return Control(control="choice", options=options, **common)
    if short == "attributes":
        return _names(common, name, facts, texts)
    if short == "positive_class" and (values := facts.values_of(facts.class_attribute)):
        return Control(control="choice", options=_options(values), **common)
    if "enum" in form or "const" in form:
        values = tuple(form.get("enum", [form.get("const")]))
        options = tuple(Option(v, v.replace("_", " ")) for v in values if v is not None)
        open_ = () if required or default is not None else (BY_DEFAULT,)
        return Control(control="choice", options=open_ + options, **common)
    if form.get("type") == "boolean":
        options = (Option("true", "yes"), Option("false", "no"))
        return Control(control="choice", options=options, type="boolean", **common)
    if form.get("type") in ("integer", "number"):
        least = form.get("minimum", form.get("exclusiveMinimum"))
        most = form.get("maximum", form.get("exclusiveMaximum"))
        kind = form["type"]
        return Control(control="number", type=kind, least=least, most=most, **common)
    if form.get("type") in ("object", "array"):
        help = f"{common.pop('help')} JSON.".strip()
        return Control(control="json", help=help, type="json", **common)
    return Control(control="text", **common)


def read_control(control: Control, texts: Form) -> Any:
    """The value of a submitted field; None if it is empty. Raises: InvalidRequest."""
    if control.control == "names":
        return texts.all(control.name) or None
    text = texts.get(control.name)
    if text == "":
        return None
    if control.type == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        what = REQUIRED.get(control.type, "JSON")
        raise InvalidRequest.at(
            *control.name.split("."), type=control.type, msg=f"{what} is required"
        ) from None


def _names(common: dict[str, Any], name: str, facts: Facts, texts: Form) -> Control:
    """Check boxes of attributes; for candidates, all but the class attribute begin as ticked."""
    names = [one.name for one in facts.attributes]
    if name.startswith("candidates"):
        names = [one for one in names if one != facts.class_attribute]
        common["values"] = tuple(texts.all(name)) or tuple(names)
    return Control(control="names", options=_options(names), **common)


def _attribute_options(facts: Facts, required: bool, numeric: bool) -> tuple[Option, ...]:
    """The attributes as options; if ``numeric``, only those with bounds, as sums and means need."""
    options = _options(
        one.name for one in facts.attributes if one.bounds is not None or not numeric
    )
    return options if required else (BY_DEFAULT, *options)


def _options(values: Iterable[str]) -> tuple[Option, ...]:
    """Options whose titles equal their values."""
    return tuple(Option(one, one) for one in values)


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema after its ``$ref`` is resolved and a null alternative is removed."""
    if "$ref" in schema:
        definition: Mapping[str, Any] = definitions[schema["$ref"].rpartition("/")[2]]
        return definition
    if "enum" in schema:
        return schema
    inner = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return _resolved(inner[0], definitions) if inner else schema


def _text(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default)
