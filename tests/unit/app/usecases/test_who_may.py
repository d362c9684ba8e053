"""Use cases refuse callers without the role, whatever door they come through."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, get_args

import pytest

from app.config.roles import Role
from app.contract.errors import Forbidden
from app.identity.callers import Caller
from app.usecases import (
    audit,
    certificates,
    datasets,
    health,
    ledger,
    notices,
    queries,
    quotes,
    records,
    refusals,
    sources,
)
from app.usecases.accounts import budget_requests, budgets, purchases, spending
from app.usecases.people import keys, users
from storage.people.users import User

ROLES = get_args(Role)
READERS = "analyst owner auditor"

#: The roles that may use each use case.
WHO_MAY: dict[Callable[..., Any], str] = {
    audit.page: "auditor",
    refusals.latest: "auditor",
    health.overview: "admin",
    users.create: "admin",
    users.page: "admin",
    users.describe: "admin",
    users.change: "admin",
    users.set_overall_budget: "admin",
    datasets.register: "owner",
    datasets.replace_description: "owner",
    datasets.facts: "analyst",
    datasets.queryable: "analyst",
    records.take_nodes: "owner",
    records.take_records: "owner",
    records.withdraw: "owner",
    sources.listing: "owner",
    sources.attach: "owner",
    sources.require_own: "owner",
    sources.attached: "owner",
    sources.detach: "owner",
    sources.pull: "owner",
    budgets.grant: "owner",
    budgets.set_allowance: "owner",
    budgets.promise_cap: "owner",
    budgets.of_dataset: "owner auditor",
    budgets.caps: "owner auditor",
    budgets.analysts: "owner auditor",
    budgets.history_of_cap: "owner auditor",
    budgets.own: "analyst",
    budgets.own_account: "analyst",
    budgets.history: "analyst",
    budgets.histories: "analyst",
    budget_requests.make: "analyst",
    budget_requests.page: "owner analyst",
    budget_requests.outlook: "owner",
    budget_requests.rights: "owner analyst",
    budget_requests.decide: "owner",
    budget_requests.erase: "owner analyst",
    certificates.of_answer: "analyst",
    certificates.of_dataset: "owner auditor",
    purchases.preview: "owner",
    purchases.of_draft: "owner",
    spending.usual: "analyst",
    spending.of_cap: "owner auditor",
    spending.account_history: "analyst",
    queries.ask: "analyst",
    queries.cancel: "analyst",
    queries.history: READERS,
    queries.look_up: READERS,
    queries.released_reply: "analyst",
    quotes.quote: "analyst",
    ledger.latest: READERS,
    ledger.page: READERS,
    ledger.verify: READERS,
}
#: Use cases that every role may call. What they show or do depends on more than the role.
EVERYBODY = {
    budgets.may_grant,
    budgets.reconcile,
    datasets.page,
    datasets.describe,
    keys.issue,
    keys.overview,
    keys.page,
    keys.revoke,
    notices.number,
    notices.page,
    refusals.count,
}
#: Use cases that only read all pages of another use case, whose roles are in WHO_MAY.
WHOLE_LISTS = {audit.every_line, ledger.every_entry}


class Reached(Exception):
    """The use case went on to the services."""


class Services:
    """Services that nobody may reach without the role."""

    def __getattr__(self, name: str) -> Any:
        raise Reached(name)


#: Arguments that need a valid form, because a use case reads them before it uses the services.
SPECIAL: dict[str, Any] = {
    "delivery": records.Delivery(None, "text/csv", False),
    "filters": {},
    # The use case that prices queries on a draft dataset needs no services. So a role that reaches
    # the draft itself counts as admitted.
    "registration": Services(),
}


def is_forbidden(use_case: Callable[..., Any], role: str) -> bool:
    caller = Caller(User(1, "uma", frozenset({role}), False, 0), "key", "api")
    parameters = list(inspect.signature(use_case).parameters.values())[2:]
    values: dict[str, Any] = {
        one.name: SPECIAL.get(one.name, "00000000-0000-0000-0000-000000000000")
        for one in parameters
        if one.default is inspect.Parameter.empty
    }
    try:
        outcome = use_case(Services(), caller, **values)
        if inspect.iscoroutine(outcome):
            asyncio.run(outcome)
    except Forbidden:
        return True
    except (Reached, AttributeError):
        return False
    raise AssertionError("it neither refused nor went on")


@pytest.mark.parametrize("use_case", WHO_MAY, ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_who_may(use_case: Callable[..., Any]) -> None:
    admitted = {role for role in ROLES if not is_forbidden(use_case, role)}
    assert admitted == set(WHO_MAY[use_case].split())


def test_every_use_case_of_a_caller_is_in_the_table() -> None:
    modules = {inspect.getmodule(one) for one in (*WHO_MAY, *EVERYBODY)}
    use_cases = {
        function
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == getattr(module, "__name__", "") and not name.startswith("_")
        if list(inspect.signature(function).parameters)[:2] == ["services", "caller"]
    }
    assert use_cases == WHO_MAY.keys() | EVERYBODY | WHOLE_LISTS
