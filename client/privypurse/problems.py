"""One exception for each problem type of the service.

Unless the docstring says otherwise, nothing was charged and nothing was changed. The texts come
from the service and contain public facts only.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import httpx

from privypurse.amounts import Amount, Charge


class PurseError(Exception):
    """The base of all exceptions of this package.

    ``idempotency_key``: the key of the query that failed, if any. The same call with this key as
    ``key=`` is answered under the same charge.
    """

    idempotency_key: str | None = None


class Unreachable(PurseError):
    """No usable reply arrived within ``patience``. A query may have been charged."""


class Unanswered(PurseError):
    """The query still runs after ``timeout``; its charge stands."""

    def __init__(self, query_id: str) -> None:
        super().__init__(f"query {query_id} is still running; send it again with the same key")
        self.id = query_id


class NoAnswer(PurseError):
    """The query has no answer that the caller may see; ``status`` says how it ended."""

    def __init__(self, query_id: str, status: str) -> None:
        super().__init__(f"query {query_id} is {status} and has no answer for you")
        self.id, self.status = query_id, status


class Problem(PurseError):
    """A problem reported by the service (RFC 9457); ``/problems/<slug>`` describes it."""

    #: True if the same request may succeed later. Sending it again is safe, because the refused
    #: request changed nothing.
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
        """The id of the query that the problem concerns; None if it concerns no query."""
        return self.members.get("id")

    def _amount(self, member: str) -> Amount:
        return Amount.of(self.members[member])


class Unauthenticated(Problem):
    """401: no key, or a key that is unknown, revoked, or of a disabled user."""


class Forbidden(Problem):
    """403: no role of the user may use this route."""


class BudgetExhausted(Problem):
    """403: the charge does not fit an account of the analyst; ``detail`` says which and why."""

    @property
    def account(self) -> str | None:
        """The account that refuses: ``analyst``, ``analyst_total`` or ``key``.

        None from older services.
        """
        return self.members.get("account")

    @property
    def charge(self) -> Charge:
        """The charge of the refused query."""
        return Charge.of(self.members["charge"])

    @property
    def remaining(self) -> Amount:
        """The rest of this account."""
        return self._amount("remaining")

    @property
    def largest_affordable(self) -> Amount:
        """The largest charge that this account admits; 0 if there is none.

        It is in ρ for a query that named ``rho``, and else in ε.
        """
        return self._amount("largest_affordable")

    def __str__(self) -> str:
        if "largest_affordable" not in self.members:
            return super().__str__()
        rest, largest = self.remaining, self.largest_affordable
        return f"{super().__str__()}\nremaining: {rest}, largest charge that fits: {largest}"


class CapExhausted(Problem):
    """403: the charge exceeds what remains of the cap over all analysts together."""

    @property
    def charge(self) -> Charge:
        """The charge of the refused query."""
        return Charge.of(self.members["charge"])


class NotFound(Problem):
    """404: the requested object does not exist, or the user may not see it."""


class StillRunning(Problem):
    """409: the query with this idempotency key has no answer yet; its charge stands."""


class TooLate(Problem):
    """409: the query can no longer be cancelled."""


class NoRecords(Problem):
    """409: the dataset has no version that can be queried now."""


class AlreadyExists(Problem):
    """409: the name is in use, or was used before."""


class BelowSpent(Problem):
    """409: a limit cannot be less than what is already charged against it."""

    @property
    def spent(self) -> Amount:
        return self._amount("spent")

    @property
    def composition_delta(self) -> Decimal | None:
        """The δ_c of the account, if the refused limit leaves it out or lowers it; else None."""
        text = self.members.get("composition_delta")
        return None if text is None else Decimal(text)

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nspent: {self.spent}" if "spent" in self.members else text


class QueryReleased(Problem):
    """409: the query with this idempotency key was cancelled without a charge; use a new key."""


class UploadRunning(Problem):
    """409: another upload to this dataset is being prepared."""


class PreconditionFailed(Problem):
    """412: the account has changed since ``if_match`` was read."""


class TooLarge(Problem):
    """413: the body is larger than the route accepts, or needs too much work to prepare."""


class InvalidRequest(Problem):
    """422: the request does not have the documented form; ``errors`` says where."""

    @property
    def errors(self) -> list[dict[str, Any]]:
        """One entry per mistake: ``loc``, ``type`` and ``msg``."""
        return list(self.members.get("errors", []))

    def __str__(self) -> str:
        lines = (
            f"{'.'.join(map(str, one.get('loc', [])))}: {one.get('msg')}" for one in self.errors
        )
        return "\n".join([super().__str__(), *lines])


class InvalidRecords(InvalidRequest):
    """422: the records do not match their public description; ``errors`` says where."""


class UnsupportedQuery(Problem):
    """422: the dataset or its neighbouring relation does not support the query."""

    @property
    def supported(self) -> dict[str, Any]:
        """The alternatives that the dataset supports."""
        return self.members.get("supported") or {}

    def __str__(self) -> str:
        lines = (
            f"{name}: {', '.join(map(str, values)) if isinstance(values, list) else values}"
            for name, values in self.supported.items()
        )
        return "\n".join([super().__str__(), *lines])


class KeyReused(Problem):
    """422: the idempotency key belongs to an earlier request with another body."""


class TooCostly(Problem):
    """422: the public worst case of the query exceeds a limit of the service."""


class RateLimited(Problem):
    """429: too many requests, or too many queries in flight."""

    temporary = True


class Busy(Problem):
    """503: the service has too much work at the moment."""

    temporary = True


class LedgerFrozen(Problem):
    """503: the ledger accepts no charge until an operator ends the freeze."""


class QueryFailed(Problem):
    """500: the query failed after it had begun. It is charged in full."""


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
    "too-costly": TooCostly,
    "rate-limited": RateLimited,
    "busy": Busy,
    "frozen": LedgerFrozen,
    "query-failed": QueryFailed,
}


def problem_of(reply: httpx.Response) -> Problem:
    """The exception for a reply with status 300 or more."""
    members: dict[str, Any] = {}
    if reply.headers.get("Content-Type", "").startswith("application/problem+json"):
        parsed = reply.json()
        members = parsed if isinstance(parsed, dict) else {}
    # A proxy may reply in place of the service, without a problem type. The HTTP status then names
    # the problem.
    slug = str(members.get("type", f"http-{reply.status_code}")).rpartition("/")[2]
    after = reply.headers.get("Retry-After", "")
    kind = PROBLEMS.get(slug, Problem)
    return kind(reply.status_code, slug, members, float(after) if after.isdecimal() else None)
