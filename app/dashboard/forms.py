"""The fields of submitted forms, and their validation by the models of the API.

Forms are converted to JSON and validated as JSON, so they obey the same rules as API requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BeforeValidator, TypeAdapter, ValidationError

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Limit
from app.contract.budgets import AllowanceIn, CompositionIn
from app.contract.errors import InvalidRequest
from app.http import strict_json

URLENCODED = "application/x-www-form-urlencoded"
MAX_FIELDS = 10_000

Model = TypeVar("Model")
LIMIT: TypeAdapter[PrivacyLoss] = TypeAdapter(Limit)
ALLOWANCE: TypeAdapter[AllowanceIn] = TypeAdapter(AllowanceIn)
COMPOSITION = TypeAdapter[CompositionIn](CompositionIn)
#: A filter by name in the URL; an empty text means no filter.
NameOrNone = Annotated[str, Query(pattern=r"^[A-Za-z0-9_.-]{0,100}$")]


class Form:
    """The fields of one submitted form; each name has one or more texts."""

    def __init__(self, fields: Mapping[str, list[str]]) -> None:
        self._fields = fields

    @classmethod
    def parse(cls, body: bytes) -> Form:
        """The form in a URL-encoded body. Raises: InvalidRequest if no browser would send it."""
        fields: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MAX_FIELDS,
            )
        except ValueError:
            raise InvalidRequest.at("body", type="form", msg="not a form") from None
        for name, text in pairs:
            if "\0" in text:
                raise InvalidRequest.at("body", type="form", msg="a text contains U+0000")
            fields.setdefault(name, []).append(text)
        return cls(fields)

    def get(self, name: str) -> str:
        """The first text of a field without surrounding blanks; empty if the field is missing."""
        return next((text.strip() for text in self._fields.get(name, ())), "")

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])


def read(kind: TypeAdapter[Model], body: Any) -> Model:
    """The model that ``body`` describes. Raises: RequestValidationError, as API routes do."""
    return read_json(kind, json.dumps(body))


def read_json(kind: TypeAdapter[Model], text: str) -> Model:
    """The model in a JSON text from a browser, validated as strictly as a body of the API."""
    encoded = text.encode("utf-8", "surrogatepass")
    strict_json.parse(encoded)
    try:
        return kind.validate_json(encoded)
    except ValidationError as error:
        raise RequestValidationError(
            list(error.errors(include_url=False, include_input=False))
        ) from None


def sent_limit(form: Form) -> PrivacyLoss:
    """The allowance in the fields epsilon and delta. Raises: RequestValidationError."""
    return read(LIMIT, {"epsilon": form.get("epsilon"), "delta": form.get("delta") or "0"})


def sent_allowance(form: Form) -> AllowanceIn:
    """The allowance in the same fields, those of ``sent_composition``, until and endless.

    Without both of the last, it keeps the end that it has. Raises: RequestValidationError,
    InvalidRequest for both.
    """
    amounts = {"epsilon": form.get("epsilon"), "delta": form.get("delta") or "0"}
    fields = {**amounts, **_composition(form)}
    if form.get("endless"):
        if form.get("until"):
            msg = "give a day or take the end away, not both"
            raise InvalidRequest.at("body", "until", type="end", msg=msg)
        fields["until"] = None
    return read(ALLOWANCE, {**fields, **sent_end(form)})


def sent_end(form: Form) -> dict[str, str]:
    """The member ``until`` of a body, the beginning of the day in that field; none without one."""
    day = form.get("until")
    return {"until": f"{day}T00:00:00Z"} if day else {}


def sent_composition(form: Form) -> CompositionIn:
    """The fields composition_delta, gaussian and allow_large_delta.

    Raises: RequestValidationError.
    """
    return read(COMPOSITION, _composition(form))


def _composition(form: Form) -> dict[str, Any]:
    flags = {name: True for name in ("gaussian", "allow_large_delta") if form.get(name)}
    return {"composition_delta": form.get("composition_delta") or "0", **flags}


async def _form(request: Request) -> Form:
    form: Form = request.state.form
    return form


#: A parameter of a page function: the submitted form.
SentForm = Annotated[Form, Depends(_form)]


#: Annotates a parameter whose form field may be empty; an empty text becomes None.
optional = BeforeValidator(lambda text: text or None)
