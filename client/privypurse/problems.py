"""What can go wrong, one exception for each problem type of the service.

Unless its text says otherwise nothing was charged and nothing was changed. Texts are made of what
the service said, which is public facts only.
"""

from __future__ import annotations

from typing import Any

import httpx

from privypurse.amounts import Amount


class PurseError(Exception):
    """Anything that this package raises by itself.

    ``idempotency_key``: of the query that was under way, if any. Ask again with ``key=`` it and
    the question is answered under the same charge.
    """

    idempotency_key: str | None = None


class Unreachable(PurseError):
    """No usable reply came for as long as the client was told to be patient."""


class Unanswered(PurseError):
    """The query still runs and ``timeout`` is over; its charge stands."""

    def __init__(self, query_id: str) -> None:
        super().__init__(f"query {query_id} is still running; ask again with the same key")
        self.id = query_id


class Problem(PurseError):
    """A problem that the service reported (RFC 9457); its page is ``/problems/<slug>``."""

    #: Whether the same request may succeed later, nothing having happened until then.
    temporary = False

    def __init__(self, status: int, slug: str, members: dict[str, Any], retry_after: float | None):
        self.status, self.slug, self.members = status, slug, members
        self.retry_after = retry_after
        self.title = str(members.get("title", slug))
        self.detail: str | None = members.get("detail")
        self.request_id: str | None = members.get("request_id")
        super().__init__(f"{self.title}: {self.detail}" if self.detail else self.title)

    @property
    def id(self) -> str | None:
        """Of the query that the problem is about."""
        return self.members.get("id")

    def _amount(self, member: str) -> Amount:
        return Amount.of(self.members[member])


class Unauthenticated(Problem):
    """401: no key, or one that is unknown, revoked, or of a disabled user."""


class Forbidden(Problem):
    """403: no role of the caller may ever use this route."""


class BudgetExhausted(Problem):
    """403: the charge does not fit what remains of the analyst's allowance."""

    @property
    def charge(self) -> Amount:
        """What the query would have cost."""
        return self._amount("charge")

    @property
    def remaining(self) -> Amount:
        """What is left of the allowance."""
        return self._amount("remaining")

    @property
    def largest_affordable(self) -> Amount:
        """The largest query that still fits; ε = 0 when none does."""
        return self._amount("largest_affordable")

    def __str__(self) -> str:
        if "largest_affordable" not in self.members:
            return super().__str__()
        left = f"left: {self.remaining}, largest query that fits: {self.largest_affordable}"
        return f"{super().__str__()}\n{left}"


class CapExhausted(Problem):
    """403: the charge does not fit what all analysts together may still learn."""

    @property
    def charge(self) -> Amount:
        """What the query would have cost."""
        return self._amount("charge")


class NotFound(Problem):
    """404: it does not exist, or it is not the caller's to see."""


class StillRunning(Problem):
    """409: the query of this key has not been released yet."""


class TooLate(Problem):
    """409: the query can no longer be cancelled."""


class NoRecords(Problem):
    """409: the dataset has no version that can be queried now."""


class AlreadyExists(Problem):
    """409: the name is taken, or was once."""


class BelowSpent(Problem):
    """409: a limit may not fall below what is already charged against it."""

    @property
    def spent(self) -> Amount:
        return self._amount("spent")

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}\nspent: {self.spent}" if "spent" in self.members else said


class QueryReleased(Problem):
    """409: the query of this key was cancelled and nothing was charged; take a new key."""


class UploadRunning(Problem):
    """409: another upload to this dataset is still being prepared."""


class PreconditionFailed(Problem):
    """412: the account is in another state than ``if_match`` names."""


class TooLarge(Problem):
    """413: the body is larger than the route reads, or takes too much work to prepare."""


class InvalidRequest(Problem):
    """422: the request has not the documented form; ``errors`` says where."""

    @property
    def errors(self) -> list[dict[str, Any]]:
        """One entry a mistake: ``loc``, ``type`` and ``msg``."""
        return list(self.members.get("errors", []))

    def __str__(self) -> str:
        lines = (
            f"{'.'.join(map(str, one.get('loc', [])))}: {one.get('msg')}" for one in self.errors
        )
        return "\n".join([super().__str__(), *lines])


class InvalidRecords(InvalidRequest):
    """422: the records do not fit their public description; ``errors`` tells the owner where."""


class UnsupportedQuery(Problem):
    """422: the query does not fit the dataset or its neighbouring relation."""

    @property
    def supported(self) -> dict[str, Any]:
        """What would fit."""
        return self.members.get("supported") or {}

    def __str__(self) -> str:
        lines = (
            f"{name}: {', '.join(map(str, values)) if isinstance(values, list) else values}"
            for name, values in self.supported.items()
        )
        return "\n".join([super().__str__(), *lines])


class KeyReused(Problem):
    """422: the idempotency key belongs to an earlier request with another body."""


class RateLimited(Problem):
    """429: too many requests, or too many queries in flight."""

    temporary = True


class Busy(Problem):
    """503: the service has as much in hand as it can hold."""

    temporary = True


class LedgerFrozen(Problem):
    """503: the ledger takes no new charge until an operator has looked at it."""


class QueryFailed(Problem):
    """500: the query failed after its records were opened. It is charged in full."""


PROBLEMS: dict[str, type[Problem]] = {
    "unauthenticated": Unauthenticated,
    "forbidden": Forbidden,
    "budget-exhausted": BudgetExhausted,
    "cap-exhausted": CapExhausted,
    "not-found": NotFound,
    "still-running": StillRunning,
    "too-late": TooLate,
    "no-records": NoRecords,
    "already-exists": AlreadyExists,
    "below-spent": BelowSpent,
    "query-released": QueryReleased,
    "upload-running": UploadRunning,
    "precondition-failed": PreconditionFailed,
    "too-large": TooLarge,
    "invalid-request": InvalidRequest,
    "invalid-records": InvalidRecords,
    "unsupported-query": UnsupportedQuery,
    "idempotency-key-reused": KeyReused,
    "rate-limited": RateLimited,
    "busy": Busy,
    "frozen": LedgerFrozen,
    "query-failed": QueryFailed,
}


def problem_of(reply: httpx.Response) -> Problem:
    """The exception that a reply of 300 or more stands for."""
    members: dict[str, Any] = {}
    if reply.headers.get("Content-Type", "").startswith("application/problem+json"):
        parsed = reply.json()
        members = parsed if isinstance(parsed, dict) else {}
    # Something between the client and the service may answer in its place, without a type.
    slug = str(members.get("type", f"http-{reply.status_code}")).rpartition("/")[2]
    after = reply.headers.get("Retry-After", "")
    kind = PROBLEMS.get(slug, Problem)
    return kind(reply.status_code, slug, members, float(after) if after.isdecimal() else None)
