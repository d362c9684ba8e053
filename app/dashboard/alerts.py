"""Turns an exception into the text of an error page, by the table of problem types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi.exceptions import RequestValidationError

from app.contract.errors import InvalidRequest, field_errors
from app.contract.problems import INTERNAL, ProblemType, problem_type


@dataclass(frozen=True)
class Alert:
    """The text of a refusal, with the mistakes in the form or file; it holds public facts only."""

    kind: ProblemType
    text: str
    errors: list[dict[str, Any]] = field(default_factory=list)
    members: Mapping[str, Any] = field(default_factory=dict)


def alert_of(error: Exception) -> Alert:
    """The alert for an exception that has a problem type; any other exception is raised again."""
    if isinstance(error, RequestValidationError):
        error = InvalidRequest(field_errors(error.errors()))
    kind = problem_type(error)
    if kind is None:
        raise error
    members = dict(kind.members(error))
    errors = members.pop("errors", [])
    said = str(error) if kind.says else ""
    text = f"{said[:1].upper()}{said[1:]}. {kind.explanation}" if said else kind.explanation
    return Alert(kind, text, errors, members)


def internal() -> Alert:
    """The alert for every unexpected error; it reveals nothing about the error."""
    return Alert(INTERNAL, INTERNAL.explanation)
