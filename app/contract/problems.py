"""Errors on the wire: one table from exception to RFC 9457 problem.

A problem says which rule was broken, in public facts; it never repeats what was sent and never
tells what only records could have told. ``type`` is a path of this service that explains itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

from accounting.errors import AccountFrozen, BelowSpent, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.errors import (
    BodyTooLarge,
    BodyTooSlow,
    Busy,
    CrossSite,
    Forbidden,
    InvalidRequest,
    NodesMissing,
    NotAcceptable,
    RateLimited,
    Unauthenticated,
    UnsupportedMediaType,
    field_errors,
)
from mechanisms.model.errors import UnsupportedQuery
from storage import errors as storage

MEDIA_TYPE = "application/problem+json"
TYPES = "/problems/"
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))

Members = Callable[[Any], Mapping[str, Any]]


def _none(_: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class ProblemType:
    """One kind of problem: ``says`` tells whether the exception's text is meant for clients."""

    status: int
    slug: str
    title: str
    explanation: str
    says: bool = False
    members: Members = _none
    headers: Callable[[Any], Mapping[str, str]] = _none

    @property
    def uri(self) -> str:
        return TYPES + self.slug


def _affordable(error: BudgetExhausted) -> dict[str, str]:
    """The largest query that still fits: no more than was asked for in δ, within ε's range."""
    epsilon = min(error.remaining.epsilon_nano, MAX_QUERY_EPSILON_NANO)
    if epsilon < MIN_QUERY_EPSILON_NANO:
        epsilon = 0
    delta = min(error.remaining.delta_atto, error.charge.delta_atto)
    return PrivacyLoss(epsilon, delta).as_dict()


def _exhausted(error: BudgetExhausted) -> Mapping[str, Any]:
    return {
        "charge": error.charge.as_dict(),
        "remaining": error.remaining.as_dict(),
        "largest_affordable": _affordable(error),
        "entries": "/v1/ledger",
    }


def _errors(error: Any) -> Mapping[str, Any]:
    return {"errors": [e.as_dict() for e in error.errors]}


def _retry_after(error: Any) -> Mapping[str, str]:
    return {"Retry-After": str(error.retry_after)}


def _record_errors(error: storage.InvalidRecords) -> Mapping[str, Any]:
    return {
        "errors": [{"loc": list(loc), "type": kind, "msg": msg} for loc, kind, msg in error.errors]
    }


def _cursor_error(_: Any) -> Mapping[str, Any]:
    return {"errors": [{"loc": ["query", "cursor"], "type": "cursor", "msg": "not a cursor"}]}


def _id(error: Any) -> Mapping[str, Any]:
    return {"id": str(error.id)}


NOT_FOUND = ProblemType(
    404,
    "not-found",
    "Not found",
    "It does not exist, or it is not yours to see: which of the two is not told.",
)
METHOD_NOT_ALLOWED = ProblemType(
    405, "method-not-allowed", "Method not allowed", "The Allow header lists what this path takes."
)
INTERNAL = ProblemType(
    500,
    "internal-error",
    "Internal error",
    "The service failed before it charged anything. The "
    "operator finds the failure under the request id.",
)
QUERY_FAILED = ProblemType(
    500,
    "query-failed",
    "The query failed",
    "The query failed after its records were opened. It "
    "is charged in full, because a failure that depends on records is itself an answer; the same "
    "key replays this reply.",
)
INVALID_REQUEST = ProblemType(
    422,
    "invalid-request",
    "Invalid request",
    "The body, a parameter or a header does not have "
    "the form that the documentation gives it; `errors` says where. Nothing was charged.",
    says=True,
    members=_errors,
)

TOO_LARGE = ProblemType(
    413,
    "too-large",
    "Too large",
    "The body is larger than this route reads, or its preparation "
    "takes more work than the published limit.",
    says=True,
)
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    415,
    "unsupported-media-type",
    "Unsupported media type",
    "The body is of a type or an encoding that this route does not read.",
    says=True,
)
BUSY = ProblemType(
    503,
    "busy",
    "Busy",
    "The service has as much in hand as it can hold. Nothing was charged.",
    says=True,
    headers=_retry_after,
)
FROZEN = ProblemType(
    503,
    "frozen",
    "Ledger frozen",
    "The ledger takes no new charge until an operator has looked at it. Nothing was charged.",
    headers=lambda _: {"Retry-After": "3600"},
)

PROBLEMS: dict[type[Exception], ProblemType] = {
    Unauthenticated: ProblemType(
        401,
        "unauthenticated",
        "A valid key is needed",
        "Send `Authorization: Bearer <key>` with "
        "a key that is neither revoked nor its user disabled.",
        headers=lambda _: {"WWW-Authenticate": "Bearer"},
    ),
    Forbidden: ProblemType(
        403, "forbidden", "Not allowed", "No role of the caller may ever use this route."
    ),
    CrossSite: ProblemType(
        403,
        "cross-site",
        "Not from this page",
        "The form did not come from a page of this service in the session that is open now: open "
        "the page again and send it from there. Nothing was changed.",
    ),
    BudgetExhausted: ProblemType(
        403,
        "budget-exhausted",
        "Privacy budget exhausted",
        "The charge does not fit what remains "
        "of the analyst's allowance for this dataset. Nothing was charged.",
        says=True,
        members=_exhausted,
    ),
    CapExhausted: ProblemType(
        403,
        "cap-exhausted",
        "Privacy cap exhausted",
        "The charge does not fit what all analysts "
        "together may still learn of this dataset. Nothing was charged.",
        says=True,
        members=lambda e: {"charge": e.charge.as_dict()},
    ),
    NotAcceptable: ProblemType(
        406,
        "not-acceptable",
        "Not acceptable",
        "The Accept header admits nothing that this route can send.",
    ),
    BelowSpent: ProblemType(
        409,
        "below-spent",
        "Below what is spent",
        "A limit may not fall below what is already charged against it. Nothing was changed.",
        says=True,
        members=lambda e: {"spent": e.spent.as_dict()},
    ),
    BodyTooSlow: ProblemType(
        408,
        "request-timeout",
        "Request timeout",
        "The body did not arrive in time. Nothing was changed.",
    ),
    BodyTooLarge: TOO_LARGE,
    storage.TooLarge: TOO_LARGE,
    UnsupportedMediaType: UNSUPPORTED_MEDIA_TYPE,
    storage.UnsupportedMediaType: UNSUPPORTED_MEDIA_TYPE,
    InvalidRequest: INVALID_REQUEST,
    UnsupportedQuery: ProblemType(
        422,
        "unsupported-query",
        "Unsupported query",
        "The query does not fit the dataset's "
        "public description or neighbouring relation; `supported` says what would. Nothing was "
        "charged.",
        says=True,
        members=lambda e: {"supported": e.supported},
    ),
    RateLimited: ProblemType(
        429,
        "rate-limited",
        "Too many queries",
        "Wait as long as Retry-After says. Nothing was charged.",
        says=True,
        headers=_retry_after,
    ),
    Busy: BUSY,
    storage.Busy: BUSY,
    AccountFrozen: FROZEN,
    storage.LedgerAlarm: FROZEN,
    storage.CommitUnknown: ProblemType(
        503,
        "outcome-unknown",
        "Outcome unknown",
        "The connection to the database was lost while "
        "it committed. Repeat the request with the same key: it is charged at most once.",
        headers=_retry_after,
    ),
    storage.NotFound: NOT_FOUND,
    storage.AlreadyExists: ProblemType(
        409,
        "already-exists",
        "Already exists",
        "What is registered stays, and names are never used again. Nothing was changed.",
        says=True,
    ),
    storage.Conflict: ProblemType(
        409,
        "last-admin",
        "The last admin",
        "The change would leave the service without an enabled admin. Nothing was changed.",
    ),
    storage.ManagedElsewhere: ProblemType(
        409,
        "managed-elsewhere",
        "Managed by the identity provider",
        "This user signs in at an identity provider: roles are given there, and there are no keys. "
        "Nothing was changed.",
    ),
    storage.StillRunning: ProblemType(
        409,
        "still-running",
        "Still running",
        "The query of this key has not been released yet.",
        members=_id,
        headers=_retry_after,
    ),
    storage.QueryReleased: ProblemType(
        409,
        "query-released",
        "Query released",
        "The query of this key was cancelled and nothing "
        "was charged: send it again under a new key.",
        members=_id,
    ),
    storage.TooLate: ProblemType(
        409,
        "too-late",
        "Too late",
        "The query can no longer be cancelled. Nothing was changed.",
        members=_id,
    ),
    storage.NoRecords: ProblemType(
        409, "no-records", "No records", "The dataset has no version that can be queried now."
    ),
    NodesMissing: ProblemType(
        409,
        "nodes-missing",
        "Node list missing",
        "The graph was registered without nodes: upload their list before the records.",
    ),
    storage.UploadRunning: ProblemType(
        409,
        "upload-running",
        "Upload running",
        "Another upload to this dataset is still being prepared. Nothing was changed.",
        headers=_retry_after,
    ),
    storage.PreconditionFailed: ProblemType(
        412,
        "precondition-failed",
        "Precondition failed",
        "The account is in another state than If-Match names. Nothing was changed.",
    ),
    storage.InvalidCursor: replace(INVALID_REQUEST, says=False, members=_cursor_error),
    storage.InvalidRecords: ProblemType(
        422,
        "invalid-records",
        "Invalid records",
        "The records do not fit their public "
        "description; `errors` tells their owner where. Nothing was stored.",
        members=_record_errors,
    ),
    storage.KeyReused: ProblemType(
        422,
        "idempotency-key-reused",
        "Idempotency-Key reused",
        "The key belongs to an earlier request with another body. Nothing was charged.",
    ),
}

#: Every type that a reply may name, by the last part of its URI.
BY_SLUG: dict[str, ProblemType] = {
    kind.slug: kind
    for kind in (*PROBLEMS.values(), NOT_FOUND, METHOD_NOT_ALLOWED, INTERNAL, QUERY_FAILED)
}


def problem_type(error: Exception) -> ProblemType | None:
    """The row of the table that covers ``error``, or None when nothing does."""
    for kind in type(error).__mro__:
        if kind in PROBLEMS:
            return PROBLEMS[kind]
    return None


def body(
    kind: ProblemType, detail: str | None = None, members: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The JSON members of a problem."""
    problem: dict[str, Any] = {"type": kind.uri, "title": kind.title, "status": kind.status}
    if detail:
        problem["detail"] = detail
    return {**problem, **(members or {})}


def response(
    kind: ProblemType,
    request_id: str,
    detail: str | None = None,
    members: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A problem as it leaves; only ``request_id`` tells two like ones apart."""
    content = {**body(kind, detail or kind.explanation, members), "request_id": request_id}
    return Response(
        _ENCODER.encode(content).encode(),
        status_code=kind.status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def response_to(error: Exception, request_id: str) -> Response | None:
    """The reply to an exception of the table, or None: then it is an internal error."""
    if isinstance(error, RequestValidationError):
        error = InvalidRequest(field_errors(error.errors()))
    kind = problem_type(error)
    if kind is None:
        return None
    detail = str(error) if kind.says else None
    return response(kind, request_id, detail, kind.members(error), kind.headers(error))


def query_failed_body(query_id: UUID) -> bytes:
    """The one fixed reply to any failure after the arrays were opened, as it is stored."""
    problem = body(QUERY_FAILED, members={"id": str(query_id)})
    return json.dumps(problem, separators=(",", ":")).encode()


def documented(kinds: Iterable[ProblemType]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI responses of these problems, one a status."""
    by_status: dict[int | str, list[ProblemType]] = {}
    for kind in kinds:
        listed = by_status.setdefault(kind.status, [])
        if kind not in listed:
            listed.append(kind)
    return {
        status: {
            "description": ", ".join(f"`{kind.slug}`" for kind in kinds_of_status),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, kinds_of_status in by_status.items()
    }


def problems(*errors: type[Exception]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI responses of these exceptions: ``responses=problems(BudgetExhausted, …)``."""
    return documented(PROBLEMS[error] for error in errors)
