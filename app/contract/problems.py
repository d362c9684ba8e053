"""Errors on the wire: one table from exception to RFC 9457 problem.

A problem names the broken rule by public facts alone. It never repeats the input, and it reveals
nothing that depends on records. ``type`` is a path of this service that explains the problem.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from fastapi.exceptions import RequestValidationError
from starlette.responses import Response

from accounting.errors import AccountFrozen, BelowSpent, BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss, format_units
from app.contract import errors
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.ledger import ACCOUNTS
from mechanisms.model.errors import UnsupportedQuery
from storage import errors as storage

MEDIA_TYPE = "application/problem+json"
TYPES = "/problems/"
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def _facts(*names: str) -> Callable[[Any], Mapping[str, Any]]:
    """Returns a function from an exception to its attributes of these names, as JSON values."""
    return lambda error: {name: _written(getattr(error, name)) for name in names}


_NO_FACTS = _facts()


@dataclass(frozen=True)
class ProblemType:
    """One kind of problem. ``says``: True if clients may read the text of the exception.

    ``members``: the public facts of the exception for the reply. ``phrase``: the title, if it
    differs from the slug in words. The ``retry_after`` of an exception sets that header.
    """

    status: int
    slug: str
    explanation: str
    phrase: str | None = None
    says: bool = False
    members: Callable[[Any], Mapping[str, Any]] = _NO_FACTS
    fixed_headers: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        return self.phrase or self.slug.replace("-", " ").capitalize()

    @property
    def uri(self) -> str:
        return TYPES + self.slug

    def headers(self, error: Exception) -> dict[str, str]:
        """The headers of a reply to ``error``."""
        headers = dict(self.fixed_headers)
        if hasattr(error, "retry_after"):
            headers["Retry-After"] = str(error.retry_after)
        return headers


def _written(fact: Any) -> Any:
    if isinstance(fact, PrivacyLoss):
        return fact.as_dict()
    return str(fact) if isinstance(fact, UUID) else fact


def _errors(error: errors.InvalidRequest | storage.InvalidRecords) -> Mapping[str, Any]:
    return {"errors": [{"loc": loc, "type": kind, "msg": msg} for loc, kind, msg in error.errors]}


def _cap_exhausted(error: CapExhausted) -> Mapping[str, Any]:
    return {"charge": error.charge.as_charge(error.has_rho)}


def _below_spent(error: BelowSpent) -> Mapping[str, Any]:
    members: dict[str, Any] = {"spent": error.spent.as_dict(error.has_rho)}
    if error.lost_atto:
        members["composition_delta"] = format_units(error.lost_atto, 18)
    return members


def _exhausted(error: BudgetExhausted) -> Mapping[str, Any]:
    """The public facts of the refusal, and the largest charge that the account admits.

    Its ε lies in the range of queries, or is 0; it is null if the request names ρ.
    """
    epsilon = min(error.largest.epsilon_nano, MAX_QUERY_EPSILON_NANO)
    if epsilon < MIN_QUERY_EPSILON_NANO:
        epsilon = 0
    largest = replace(error.largest, epsilon_nano=epsilon)
    return {
        "account": ACCOUNTS[error.rank],
        "charge": error.charge.as_charge(error.has_rho),
        "remaining": error.remaining.as_dict(error.has_rho),
        "largest_affordable": largest.as_charge(with_rho=False),
        "entries": "/v1/ledger",
    }


def _cursor_error(_: Any) -> Mapping[str, Any]:
    return {"errors": [{"loc": ["query", "cursor"], "type": "cursor", "msg": "not a cursor"}]}


NOT_FOUND = ProblemType(
    404, "not-found", "It does not exist, or it is not yours to see. The reply does not say which."
)
METHOD_NOT_ALLOWED = ProblemType(
    405, "method-not-allowed", "The Allow header lists what this path takes."
)
INTERNAL = ProblemType(
    500,
    "internal-error",
    "The service failed before it charged anything. The operator finds the failure under the "
    "request id.",
)
QUERY_FAILED = ProblemType(
    500,
    "query-failed",
    "The work of the query itself failed. It is charged in full, because a failure "
    "that depends on records is itself an answer; the same key replays this reply.",
    "The query failed",
)
INVALID_REQUEST = ProblemType(
    422,
    "invalid-request",
    "The body, a parameter or a header does not have the form that the documentation gives it; "
    "`errors` says where. Nothing was charged.",
    says=True,
    members=_errors,
)
TOO_LARGE = ProblemType(
    413,
    "too-large",
    "The body is larger than this route reads, or its preparation takes more work than the "
    "published limit.",
    says=True,
)
REQUEST_TIMEOUT = ProblemType(
    408, "request-timeout", "The headers or the body did not arrive in time. Nothing was changed."
)
HEADERS_TOO_LARGE = ProblemType(
    431,
    "headers-too-large",
    "The address and the headers of the request are longer than this service reads, or too many. "
    "Nothing was changed.",
)
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    415,
    "unsupported-media-type",
    "The body is of a type or an encoding that this route does not read.",
    says=True,
)
BUSY = ProblemType(
    503,
    "busy",
    "The service has as much in hand as it can hold, has just started and is warming up, or the "
    "records are not open here yet. Nothing was charged.",
    says=True,
)
FROZEN = ProblemType(
    503,
    "frozen",
    "The ledger takes no new charge until an operator has looked at it. Nothing was charged.",
    "Ledger frozen",
    fixed_headers=(("Retry-After", "3600"),),
)

PROBLEMS: dict[type[Exception], ProblemType] = {
    errors.Unauthenticated: ProblemType(
        401,
        "unauthenticated",
        "Send `Authorization: Bearer <key>` with a key that is not revoked and whose user is "
        "not disabled.",
        "A valid key is needed",
        fixed_headers=(("WWW-Authenticate", "Bearer"),),
    ),
    errors.Forbidden: ProblemType(
        403,
        "forbidden",
        "No role of the caller may ever use this route.",
        "Not allowed",
        says=True,
    ),
    errors.CrossSite: ProblemType(
        403,
        "cross-site",
        "The form did not come from a page of this service in the session that is open now: open "
        "the page again and send it from there. Nothing was changed.",
        "Not from this page",
    ),
    BudgetExhausted: ProblemType(
        403,
        "budget-exhausted",
        "The charge does not fit what remains of the analyst's allowance for this dataset, or of "
        "a limit of the analyst or of the key. Nothing remains of an allowance that has ended. "
        "Nothing was charged.",
        "Privacy budget exhausted",
        says=True,
        members=_exhausted,
    ),
    CapExhausted: ProblemType(
        403,
        "cap-exhausted",
        "The charge does not fit what all analysts together may still learn of this dataset. "
        "Nothing was charged.",
        "Privacy cap exhausted",
        says=True,
        members=_cap_exhausted,
    ),
    errors.NotAcceptable: ProblemType(
        406, "not-acceptable", "The Accept header admits nothing that this route can send."
    ),
    BelowSpent: ProblemType(
        409,
        "below-spent",
        "A limit may not fall below what is already charged against it. Nothing was changed.",
        "Below what is spent",
        says=True,
        members=_below_spent,
    ),
    errors.BodyTooSlow: REQUEST_TIMEOUT,
    errors.BodyTooLarge: TOO_LARGE,
    storage.TooLarge: TOO_LARGE,
    errors.UnsupportedMediaType: UNSUPPORTED_MEDIA_TYPE,
    storage.UnsupportedMediaType: UNSUPPORTED_MEDIA_TYPE,
    errors.InvalidRequest: INVALID_REQUEST,
    UnsupportedQuery: ProblemType(
        422,
        "unsupported-query",
        "The query does not fit the dataset's public description or neighbouring relation; "
        "`supported` says what would. Nothing was charged.",
        says=True,
        members=_facts("supported"),
    ),
    errors.TooCostly: ProblemType(
        422,
        "too-costly",
        "The public worst case of the query exceeds a limit of this service, whatever the records "
        "are; `cost` and `limit` say which, `lower` what to lower. Nothing was charged.",
        "Too costly",
        says=True,
        members=_facts("cost", "limit", "lower"),
    ),
    errors.RateLimited: ProblemType(
        429,
        "rate-limited",
        "Wait as long as Retry-After says. Nothing was charged.",
        "Too many queries",
        says=True,
    ),
    errors.Busy: BUSY,
    errors.WarmingUp: BUSY,
    storage.Busy: BUSY,
    AccountFrozen: FROZEN,
    storage.LedgerAlarm: FROZEN,
    storage.CommitUnknown: ProblemType(
        503,
        "outcome-unknown",
        "The connection to the database was lost while it committed. Repeat the request with the "
        "same key: it is charged at most once.",
    ),
    storage.NotFound: NOT_FOUND,
    storage.AlreadyExists: ProblemType(
        409,
        "already-exists",
        "What is registered stays, and names are never used again. Nothing was changed.",
        says=True,
    ),
    storage.Conflict: ProblemType(
        409,
        "last-admin",
        "The change would leave the service without an enabled admin. Nothing was changed.",
        "The last admin",
    ),
    storage.ManagedElsewhere: ProblemType(
        409,
        "managed-elsewhere",
        "This user signs in at an identity provider: roles are given there, and there are no keys. "
        "Nothing was changed.",
        "Managed by the identity provider",
    ),
    storage.StillRunning: ProblemType(
        409,
        "still-running",
        "The query of this key has not been released yet: send the key again later. If the service "
        "was killed during the query, its charge stands, and the key runs it again once the lease "
        "of the lost attempt is over.",
        members=_facts("id"),
    ),
    storage.QueryReleased: ProblemType(
        409,
        "query-released",
        "The query of this key was cancelled and nothing was charged: send it again under a new "
        "key.",
        members=_facts("id"),
    ),
    storage.TooLate: ProblemType(
        409,
        "too-late",
        "The query can no longer be cancelled. Nothing was changed.",
        members=_facts("id"),
    ),
    storage.RequestOpen: ProblemType(
        409,
        "request-open",
        "Your request for budget on this dataset is not decided yet: wait for the decision, or "
        "withdraw it. Nothing was changed.",
        "A request is open",
    ),
    storage.RequestDecided: ProblemType(
        409,
        "request-decided",
        "The request for budget is decided or withdrawn already. Nothing was changed.",
        "Already decided",
    ),
    storage.NoRecords: ProblemType(
        409, "no-records", "The dataset has no version that can be queried now."
    ),
    errors.NodesMissing: ProblemType(
        409,
        "nodes-missing",
        "The graph was registered without nodes: upload their list before the records.",
        "Node list missing",
    ),
    storage.SourceFailed: ProblemType(
        502,
        "source-failed",
        "The source of the records refused, or could not be reached. Nothing was stored.",
        says=True,
    ),
    storage.UploadRunning: ProblemType(
        409,
        "upload-running",
        "Another upload to this dataset is still being prepared. Nothing was changed.",
    ),
    storage.PreconditionFailed: ProblemType(
        412,
        "precondition-failed",
        "The account is in another state than If-Match names. Nothing was changed.",
    ),
    storage.InvalidCursor: replace(INVALID_REQUEST, says=False, members=_cursor_error),
    storage.InvalidRecords: ProblemType(
        422,
        "invalid-records",
        "The records do not fit their public description; `errors` tells their owner where. "
        "Nothing was stored.",
        members=_errors,
    ),
    storage.KeyReused: ProblemType(
        422,
        "idempotency-key-reused",
        "The key belongs to an earlier request with another body. Nothing was charged.",
        "Idempotency-Key reused",
    ),
}

#: Every problem type that a reply may name, by the last part of its URI.
BY_SLUG: dict[str, ProblemType] = {
    kind.slug: kind
    for kind in (
        *PROBLEMS.values(),
        NOT_FOUND,
        METHOD_NOT_ALLOWED,
        HEADERS_TOO_LARGE,
        INTERNAL,
        QUERY_FAILED,
    )
}


def problem_type(error: Exception) -> ProblemType | None:
    """The problem type for ``error`` or its nearest listed base class; None if there is none."""
    for kind in type(error).__mro__:
        if kind in PROBLEMS:
            return PROBLEMS[kind]
    return None


def body(
    kind: ProblemType, detail: str | None = None, members: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The JSON members of a problem; ``members`` are added to the common ones."""
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
    """The reply with a problem. Equal problems differ only in ``request_id``."""
    content = {**body(kind, detail or kind.explanation, members), "request_id": request_id}
    return Response(
        _ENCODER.encode(content).encode(),
        status_code=kind.status,
        media_type=MEDIA_TYPE,
        headers=dict(headers or {}),
    )


def response_to(error: Exception, request_id: str) -> Response | None:
    """The reply to ``error``; None if the table has no row for it, as for an internal error."""
    if isinstance(error, RequestValidationError):
        error = errors.InvalidRequest(errors.field_errors(error.errors()))
    kind = problem_type(error)
    if kind is None:
        return None
    detail = str(error) if kind.says else None
    return response(kind, request_id, detail, kind.members(error), kind.headers(error))


def query_failed_body(query_id: UUID) -> bytes:
    """The stored reply to any failure of the work itself, which does not name the cause."""
    problem = body(QUERY_FAILED, members={"id": str(query_id)})
    return json.dumps(problem, separators=(",", ":")).encode()


def documented(kinds: Iterable[ProblemType]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI responses for these problems, one per status."""
    slugs: dict[int | str, dict[str, None]] = {}
    for kind in kinds:
        slugs.setdefault(kind.status, {})[f"`{kind.slug}`"] = None
    return {
        status: {
            "description": ", ".join(listed),
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for status, listed in slugs.items()
    }


def problems(*kinds: type[Exception]) -> dict[int | str, dict[str, Any]]:
    """OpenAPI responses for these exceptions: ``responses=problems(BudgetExhausted, …)``."""
    return documented(PROBLEMS[kind] for kind in kinds)
