"""The look-up that a query begins with: its key, its dataset and its accounts, in one read."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, bindparam, select

from accounting.account import AccountRank, fits_more
from accounting.privacy_loss import PrivacyLoss
from storage.catalogue.dataset_facts import Facts
from storage.catalogue.dataset_rows import FACTS, WITH_CAP
from storage.catalogue.datasets import Datasets, sees_ungranted
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.statements import Hot
from storage.database.tables import budget_account, dataset, query
from storage.errors import NotFound
from storage.ledger import replay
from storage.ledger.accounts import (
    BALANCE,
    AccountBalance,
    Refusal,
    account_of_key,
    charged_accounts,
    has_key,
    refusal_of,
)
from storage.ledger.ledger import Ledger
from storage.ledger.requests import Equals, Replay
from storage.people.users import User

_d = dataset.c
_analyst = bindparam("analyst", type_=BigInteger)
_own, _overall, _key_account = (budget_account.alias(name) for name in ("own", "overall", "keyed"))
#: For each account that a query is charged to, its table or alias and its key, in the order in
#: which the accounts are locked.
_CHARGED = (
    (_key_account, account_of_key(_analyst, bindparam("limited_key"))),
    *zip((_own, _overall, budget_account), charged_accounts(_d.id, _analyst), strict=True),
)
_BALANCES_FROM = len(FACTS) + len(replay.COLUMNS) + 1
#: For each account in ``_CHARGED``, its rank and the index of its first column in a row of the
#: look-up.
_PLACES = tuple(
    (key.rank, _BALANCES_FROM + number * len(BALANCE)) for number, (_, key) in enumerate(_CHARGED)
)
_OWN_PLACE = dict(_PLACES)[AccountRank.ANALYST_ON_DATASET]

_FROM = WITH_CAP.outerjoin(query, replay.HAS_KEY)
for _table, _key in _CHARGED[:3]:  # the fourth, the account of all analysts, is joined already
    _FROM = _FROM.outerjoin(_table, has_key(_table, _key))
_LOOK_UP = Hot(
    select(
        *FACTS,
        *replay.COLUMNS,
        now_us().label("now"),
        *(
            table.c[column.name].label(f"{column.name}_{number}")
            for number, (table, _) in enumerate(_CHARGED)
            for column in BALANCE
        ),
    )
    .select_from(_FROM)
    .where(_d.name == bindparam("name"))
)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """A dataset that the analyst may see, and its accounts at the same moment.

    ``version`` is that of the query if the key exists; else the current one, or 0 without records.
    ``charged`` are the accounts of a new query; None if the key exists or the analyst has no
    account.
    ``at_us``: the moment of the look-up.
    """

    id: int
    name: str
    version: int
    facts: Facts
    charged: tuple[AccountBalance, ...] | None
    at_us: int

    @property
    def counts_rho(self) -> bool:
        """Whether the analyst's own account on the dataset counts in ρ as well."""
        own = AccountRank.ANALYST_ON_DATASET
        return any(one.has_rho for one in self.charged or () if one.rank == own)

    def refusal(self, charge: PrivacyLoss) -> Refusal | None:
        """The refusal of ``charge`` by the snapshot, or None; a refusal saves a transaction.

        A refusal is correct, because the charge did not fit at a moment during the request. The
        guard checks every other query again, and also refuses an analyst without an account.
        """
        return refusal_of(self.charged or (), charge, self.at_us)

    def fits_more(self, charge: PrivacyLoss) -> int | None:
        """How many such charges fit all accounts by the snapshot; None if nothing bounds them."""
        numbers = (
            fits_more(one.limits, one.sums, charge.amounts) if one.is_open(self.at_us) else 0
            for one in self.charged or ()
        )
        return min((number for number in numbers if number is not None), default=None)


class QueryLookup:
    """Reads what a query needs before its price; safe to share between threads."""

    def __init__(self, database: Database, datasets: Datasets, ledger: Ledger) -> None:
        self._database, self._datasets, self._ledger = database, datasets, ledger

    def look_up(
        self,
        name: str,
        analyst: User,
        key: str | None,
        body_hash: bytes,
        equals: Equals | None = None,
    ) -> Replay | LookedUp:
        """The stored reply under the key, or the dataset of that name.

        Raises: NotFound when there is none or the analyst may not see it; KeyReused, StillRunning,
        QueryReleased.
        """
        scope = analyst.scope
        rows = self._database.look_up(
            _LOOK_UP, name=name, analyst=analyst.id, key=key, limited_key=scope.limited_key or ""
        )
        if not rows:
            if key is not None:
                # No dataset has this name, and datasets are never deleted. So a stored query with
                # this idempotency key had another request, and ``replay`` refuses the key.
                self._ledger.replay(analyst.id, key, body_hash, equals)
            raise NotFound
        if not scope.admits(rows[0].id):
            # The API key is restricted to other datasets. Danger: its holder must not learn that
            # this one exists, not even by the state of a query.
            raise NotFound
        (row,) = rows
        if row.query_id is not None:
            outcome = self._ledger.judge(row, body_hash, equals)
            if outcome is not None:
                return outcome
        balances = _balances(row)
        # Access is checked before ``Datasets.facts``, which may open a long list of node names.
        has_account = row[_OWN_PLACE] is not None
        if not ("analyst" in analyst.roles and has_account) and not sees_ungranted(row, analyst):
            raise NotFound
        charged = balances if has_account and row.query_id is None else None
        version = row.version if row.query_id is None else row.dataset_version
        return LookedUp(row.id, row.name, version, self._datasets.facts(row), charged, row.now)


def _balances(row: Any) -> tuple[AccountBalance, ...]:
    return tuple(
        [
            AccountBalance.of(rank, row[start : start + len(BALANCE)])
            for rank, start in _PLACES
            if row[start] is not None
        ]
    )
