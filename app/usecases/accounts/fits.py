"""How many more queries of each kind fit an account that counts in ρ.

A query of each kind at one ε stands for the kind, so that accounts can be compared. Its price
follows from public facts alone; a quote tells the number for any other query.
"""

from __future__ import annotations

from accounting.account import Account, fits_more
from accounting.privacy_loss import NANO, PrivacyLoss
from app.contract.errors import UnsupportedQuery
from app.queries import QUERY, QUERY_KINDS
from storage.catalogue.dataset_rows import StoredDataset

#: The privacy loss, ε = 0.1, of the example queries that stand for their kinds.
LOSS = PrivacyLoss(NANO // 10)

#: For one dataset: the charge of each kind's example query, by the name of the kind.
Charges = dict[str, PrivacyLoss]


def charges_by_kind(dataset: StoredDataset) -> Charges:
    """The charge of the query that stands for each kind. Kinds that do not fit are left out."""
    charges: Charges = {}
    if dataset.public is None:
        return charges  # The owner has not uploaded the node list yet.
    for kind in QUERY_KINDS.values():
        for body in kind.examples.standing_for_the_kind(dataset.description["kind"]):
            try:
                query = QUERY.validate_python(body, strict=False)
                charges[kind.name] = query.in_rho().price(dataset.public, LOSS).charge()
                break
            except UnsupportedQuery:
                continue
    return charges


def more_by_kind(account: Account, charges: Charges) -> dict[str, int]:
    """How many queries of each kind fit one after another, if nothing else is charged."""
    limits, sums = account.limit.amounts, account.charged.amounts
    return {name: fits_more(limits, sums, one.amounts) or 0 for name, one in charges.items()}
