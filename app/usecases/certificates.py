"""Certificates: signed statements of what the service claims about an answer or a dataset.

Danger: the certificate of a dataset may be published. It binds answers by salted digests, and holds
no released value, no interval and no value of a question.

A signature shows that the service has said so, and that nothing was changed since. It does not show
that what it says is true.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from accounting.privacy_loss import PrivacyLoss
from app import __version__
from app.contract.budgets import DatasetBudgets
from app.contract.errors import Busy, UnsupportedQuery
from app.contract.times import moment
from app.engine.requests import written
from app.identity.callers import Caller
from app.queries import QUERY, QUERY_KINDS, Query
from app.queries.catalogue import vocabulary
from app.usecases import queries
from app.usecases.accounts import budgets
from app.usecases.registry import nist_fields, registry_fields, unit_of
from app.usecases.services import Services
from app.usecases.visibility import owned, require, visible
from storage.catalogue.datasets import StoredDataset
from storage.journal.certificate_keys import PublicKey
from storage.journal.layouts import salted_digest
from storage.queries.bindings import BoundAnswer, bound_answers, head_of_cap, salt_of

#: The most answers that the certificate of a dataset lists. The head in the certificate binds the
#: charges of all answers.
MOST_ANSWERS = 1000
CLAIM = (
    "This is what the service claims. The signature shows that the service said so and that "
    "nothing was changed since. It does not show that the service runs the published code on "
    "these records."
)
HOW_TO_VERIFY = (
    "Fetch the public keys of the service once with GET /v1/certificate-keys, keep them, and run: "
    "privypurse verify-certificate FILE --key KEYS. It needs no network."
)
#: The most attempts to read the budgets of a dataset without a change meanwhile. After that its
#: certificate is refused as busy.
ATTEMPTS = 20
OMITTED = frozenset({"nodes", "attributes", "public_values", "name", "description"})


def keys(services: Services) -> dict[str, list[PublicKey]]:
    """The public keys of all certificates, as a set of JSON Web Keys (RFC 7517)."""
    return {"keys": services.certificate_keys.all()}


async def of_answer(services: Services, caller: Caller, query_id: str) -> str:
    """The certificate of the caller's own answer. Raises: NotFound, StillRunning, NotAcceptable."""
    reply = await queries.released_reply(services, caller, query_id)
    return await run_in_threadpool(_of_answer, services, reply)


def of_dataset(services: Services, caller: Caller, name: str) -> str:
    """The certificate of a dataset, for its owner and for auditors.

    Raises: NotFound; RateLimited, Busy where others read as much.
    """
    require(caller, "owner", "auditor")
    find = visible if "auditor" in caller.roles else owned
    stored = find(services, caller, name)
    with services.reads.slot(caller.id):
        return _of_dataset(services, caller, stored)


def _of_dataset(services: Services, caller: Caller, stored: StoredDataset) -> str:
    answers = bound_answers(services.database, stored.id, MOST_ANSWERS + 1)
    whole, entries, head = _loss_at_head(services, caller, stored)
    loss = {
        "cap": whole.cap.allowance.as_dict(),
        "spent": whole.exposure.spent.as_dict(),
        "at_most": whole.exposure.at_most.as_dict(),
        "accounts": len(whole.items),
    }
    unit = unit_of(stored.description)
    kinds = sorted({one.kind for one in answers})
    titles = [QUERY_KINDS[kind].body.title for kind in kinds if kind in QUERY_KINDS]
    return _signed(
        services,
        "dataset",
        {
            "dataset": {
                "name": stored.name,
                "owner": stored.owner,
                "version": stored.version,
                **{k: v for k, v in stored.description.items() if k not in OMITTED},
            },
            "unit": unit,
            "loss": loss,
            "noise": {"kinds": kinds, "source": "docs/mechanisms.md of the service's version"},
            "answers": [_bound(one) for one in answers[:MOST_ANSWERS]],
            "has_more_answers": len(answers) > MOST_ANSWERS,
            "ledger": {"entries": entries, "head": head.hex()},
            "deployment_registry": registry_fields(stored, loss, unit, titles),
            "nist_sp_800_226": nist_fields(stored, loss, unit, titles),
        },
    )


def _loss_at_head(
    services: Services, caller: Caller, stored: StoredDataset
) -> tuple[DatasetBudgets, int, bytes]:
    """The budgets, and the entries and head of the cap at which they hold. Raises: Busy.

    Danger: a charge between two reads would make a signed statement that does not add up. Every
    charge moves the head of the cap, so the budgets are read between two equal heads.
    """
    before = head_of_cap(services.database, stored.id)
    for _ in range(ATTEMPTS):
        whole = budgets.of_dataset(services, caller, stored.name)
        after = head_of_cap(services.database, stored.id)
        if after == before:
            return whole, *after
        before = after
    raise Busy


def _of_answer(services: Services, reply: bytes) -> str:
    stated: dict[str, Any] = json.loads(reply)
    answer = stated["answer"]
    salt = salt_of(services.database, UUID(stated["id"]))
    binding = None
    if salt is not None:
        binding = {
            "digest": salted_digest(salt, reply).hex(),
            "salt": salt.hex(),
            "of": "SHA-256 over the salt and the text of reply",
        }
    dataset = services.datasets.find(stated["dataset"])
    return _signed(
        services,
        "answer",
        {
            "query": stated["id"],
            "dataset": {"name": dataset.name, "version": stated["dataset_version"]},
            "question": answer.get("question"),
            "unit": unit_of(dataset.description),
            "loss": stated["charge"],
            "noise": _noise(dataset, stated),
            "interval": {
                "confidence": answer.get("confidence"),
                "where": "low and high beside each value of the reply, where its noise is public",
            },
            "receipt": stated["receipt"],
            "binding": binding,
            "reply": reply.decode(),
        },
    )


def _resolved(query: Query, dataset: StoredDataset, charge: dict[str, Any]) -> dict[str, str]:
    """The defaults of the account that was charged: its charge in ρ tells which they were."""
    if dataset.public is None or charge["epsilon"] is None:
        return {}
    loss = PrivacyLoss.parse(charge["epsilon"], charge["delta"])
    plain, in_rho = (one.price(dataset.public, loss) for one in (query, query.in_rho()))
    is_in_rho = charge.get("rho") == in_rho.charge().as_charge()["rho"]
    return dict((in_rho if is_in_rho else plain).resolved)


def _noise(dataset: StoredDataset, stated: dict[str, Any]) -> dict[str, Any]:
    """How the noise was drawn: the steps of the charge, and the mechanisms with their sources."""
    try:
        query = QUERY.validate_json(written(stated["query"]))
        resolved = _resolved(query, dataset, stated["charge"])
    except (ValidationError, UnsupportedQuery):
        # This version of the service no longer offers the stored query, so its mechanisms are
        # unknown.
        return {"kind": None, "resolved": {}, "mechanisms": [], "steps": stated["steps"]}
    names = {*resolved.values(), *query.mechanisms()}
    facts = vocabulary()
    mechanisms = [
        *facts["selectors"],
        *(one for statistic in facts["statistics"] for one in statistic["mechanisms"]),
    ]
    used = {one["name"]: one for one in mechanisms if one["name"] in names}
    return {
        "kind": {"title": query.title, "description": query.description},
        "resolved": resolved,
        "mechanisms": [
            {name: one[name] for name in ("name", "title", "description", "source")}
            for one in used.values()
        ],
        "steps": stated["steps"],
    }


def _bound(one: BoundAnswer) -> dict[str, Any]:
    return {
        "query": str(one.id),
        "kind": one.kind,
        "version": one.version,
        "loss": one.charge.as_charge(one.rho_f is not None),
        "released": moment(one.released_us).isoformat(),
        "digest": one.digest,
    }


def _signed(services: Services, subject: str, members: dict[str, Any]) -> str:
    statement = {
        "certificate": f"privypurse {subject} 1",
        "claim": CLAIM,
        "issued": moment(services.database.now_us()).isoformat(),
        "service": {"version": __version__},
        **members,
        "how_to_verify": HOW_TO_VERIFY,
    }
    return services.certificate_key.signed(written(statement).encode())
