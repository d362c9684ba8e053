"""How many more queries of each kind fit an account that counts in ρ.

A query of each kind at one ε stands for the kind, so that accounts can be compared. Its price
follows from public facts alone; a quote tells the number for any other query.

Defaults follow from the analyst's allowance: where it counts in ρ, they cost less of it. A cap is
charged for analysts of both sorts, so it takes the dearest defaults among its allowances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from accounting.account import Account, fits_more
from accounting.privacy_loss import NANO, PrivacyLoss
from app.contract.errors import UnsupportedQuery
from app.queries import QUERY, QUERY_KINDS
from storage.catalogue.dataset_rows import StoredDataset

#: The privacy loss, ε = 0.1, of the example queries that stand for their kinds.
LOSS = PrivacyLoss(NANO // 10)

#: For one dataset: the charge of each kind's example query, by the name of the kind.
Charges = Mapping[str, PrivacyLoss]


class _Public:
    """A public description as a key, equal to itself alone: to compare domains takes too long."""

    def __init__(self, dataset: StoredDataset) -> None:
        self.description, self.kind = dataset.public, dataset.description["kind"]

    def __hash__(self) -> int:
        return id(self.description)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Public) and self.description is other.description


def charges_by_kind(dataset: StoredDataset, in_rho: bool) -> Charges:
    """The charge of the query that stands for each kind. Kinds that do not fit are left out.

    ``in_rho``: by the defaults of an allowance that counts in ρ as well. They are worked out once
    for one description, because that takes milliseconds and many pages show them.
    """
    if dataset.public is None:
        # The owner has not uploaded the graph's node list yet, so no query has a price.
        return {}
    return _charges_by_kind(_Public(dataset), in_rho)


@lru_cache(maxsize=256)
def _charges_by_kind(public: _Public, in_rho: bool) -> Charges:
    assert public.description is not None
    charges: dict[str, PrivacyLoss] = {}
    for kind in QUERY_KINDS.values():
        for body in kind.examples.standing_for_the_kind(public.kind):
            try:
                query = QUERY.validate_python(body, strict=False)
                query = query.in_rho() if in_rho else query
                charges[kind.name] = query.price(public.description, LOSS).charge()
                break
            except UnsupportedQuery:
                continue
    return charges


def more_by_kind(account: Account, charges: Sequence[Charges]) -> dict[str, int]:
    """How many queries of each kind fit one after another, if nothing else is charged.

    It is the smallest number where ``charges``, which are not empty, are by several defaults.
    Kinds that one of these defaults does not answer are left out.
    """
    limits, sums = account.limit.amounts, account.charged.amounts
    return {
        name: min(fits_more(limits, sums, one[name].amounts) or 0 for one in charges)
        for name in charges[0]
        if all(name in one for one in charges)
    }
