"""A refusal as people read it: the row of the table of problems, in words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fastapi.exceptions import RequestValidationError

from app.contract.errors import InvalidRequest, field_errors
from app.contract.problems import INTERNAL, ProblemType, problem_type


@dataclass(frozen=True)
class Alert:
    """What was refused, why, and where a form or a file is wrong; public facts, as in the API."""

    kind: ProblemType
    text: str
    errors: list[dict[str, Any]] = field(default_factory=list)
    members: Mapping[str, Any] = field(default_factory=dict)


def alert_of(error: Exception) -> Alert:
    """The alert for an exception of the table; any other one is raised again."""
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
    """The one text for whatever was not foreseen."""
    return Alert(INTERNAL, INTERNAL.explanation)
