"""What programs that ask queries on their own need: datasets with budgets, and query kinds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice
from typing import Any

from accounting.privacy_loss import PrivacyLoss
from app.contract.datasets import DatasetOut
from app.contract.errors import UnsupportedQuery
from app.contract.models import Listing
from app.identity.callers import Caller
from app.queries import QUERY, QUERY_KINDS, Kind
from app.usecases import datasets
from app.usecases.accounts import budgets
from app.usecases.accounts.fits import LOSS
from app.usecases.services import Services
from app.usecases.visibility import visible
from storage.catalogue.dataset_rows import StoredDataset

#: The most example queries of one kind that are tried on a dataset, to find one that fits it.
TRIED = 20


def datasets_and_budgets(
    services: Services, caller: Caller, limit: int, cursor: str | None
) -> tuple[Listing[datasets.DatasetView], dict[str, Any]]:
    """One page of the datasets that the caller may see, and the caller's own budgets.

    The budgets are those of ``GET /v1/budgets``, and empty for a caller who is no analyst.
    Raises: InvalidCursor.
    """
    page = datasets.page(services, caller, limit, cursor)
    if "analyst" not in caller.roles:
        return page, {}
    own = budgets.own(services, caller)
    return page, own.model_dump(mode="json", exclude_none=True)


def description(
    services: Services, caller: Caller, name: str
) -> tuple[datasets.DatasetView, list[dict[str, Any]]]:
    """One dataset, and an example query of each kind that fits it. Raises: NotFound.

    The examples follow from the public description alone. There is none for a caller who may see
    the name alone, and none before a graph has nodes.
    """
    view = datasets.describe(services, caller, name).view
    stored = visible(services, caller, name)
    if not isinstance(view, DatasetOut) or stored.public is None:
        return view, []
    examples = [(kind, _example(kind, stored)) for kind in QUERY_KINDS.values()]
    return view, [
        {
            "kind": kind.name,
            "title": kind.body.title,
            "description": kind.body.description,
            "example": dict(example),
        }
        for kind, example in examples
        if example is not None
    ]


def _example(kind: Kind, stored: StoredDataset) -> Mapping[str, Any] | None:
    """The first example query of the kind that the dataset admits; None if there is none."""
    examples, public = kind.examples, stored.public
    assert public is not None, "a dataset without nodes has no examples"
    bodies = chain(
        examples.standing_for_the_kind(stored.description["kind"]), examples.every(public)
    )
    for body in islice(bodies, TRIED):
        try:
            query = QUERY.validate_python(body, strict=False)
            query.price(public, PrivacyLoss(LOSS.epsilon_nano, query.delta_atto()))
        except UnsupportedQuery:
            continue
        return body
    return None
