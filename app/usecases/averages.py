"""Whether another answer to the same question would be averaged with a stored one.

Danger: the client averages after the second answer is paid. So what it refuses is not offered.
"""

from collections.abc import Mapping
from typing import Any

from app.identity.callers import Caller
from app.usecases.queries import QueryView
from app.usecases.services import Services


def against_another(services: Services, _caller: Caller, view: QueryView) -> str | None:
    """Why not to ask again for what is missing of an own answer; None if nothing speaks against it.

    ``view`` is what the caller may see.
    """
    stored = services.datasets.find(view.query.dataset)
    version = stored.version if stored.status == "ready" else None
    return obstacle(view.members(), version)


def obstacle(reply: Mapping[str, Any], version: int | None) -> str | None:
    """As ``against_another``, for a stored reply and the version that queries read, None for none.

    It refuses what ``average`` of the client refuses, or would give no number for.
    """
    query, answer = reply["query"], reply.get("answer")
    if query["kind"] != "table" or reply["charge"]["epsilon"] is not None or answer is None:
        return "only tables with Gaussian noise are averaged"
    if reply["dataset_version"] != version:
        return "queries no longer read the version of the records that it is about"
    if not any(name == "count" or name.startswith("sum(") for name in answer["cells"]):
        return "it has no counts or sums, and other numbers are not averaged"
    if query.get("non_negative"):
        return "numbers that are never negative are too high on average"
    if "suppressed" in answer:
        return "numbers that are suppressed when they are small are not averaged"
    if not all("step" in one for one in answer["noise"]):
        return "it is of an earlier release, which stated no steps of noise"
    return None
