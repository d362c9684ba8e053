"""What a query begins with, in one look at the database: its key, its dataset, its accounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, and_, bindparam, select

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import Dataset
from storage.catalogue.dataset_rows import FACTS, WITH_CAP
from storage.catalogue.datasets import Datasets, sees_ungranted
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.statements import Hot
from storage.database.tables import budget_account, dataset, query
from storage.errors import NotFound
from storage.files.labels import DistantLabels
from storage.ledger import replay
from storage.ledger.charging import Refusal, refusal
from storage.ledger.ledger import Ledger
from storage.ledger.requests import Replay
from storage.people.users import User

_d = dataset.c
_own, _overall = budget_account.alias("own"), budget_account.alias("overall")
_analyst = bindparam("analyst", type_=BigInteger)
#: The accounts that a query is charged to, in the order in which they are asked.
_CHARGED = (
    (AccountRank.ANALYST_ON_DATASET, _own),
    (AccountRank.ANALYST, _overall),
    (AccountRank.DATASET, budget_account),
)
#: In the order of the parameters of ``refusal``.
_STANDING = ("frozen", "lim_eps_n", "lim_delta_a", "charged_eps_n", "charged_delta_a")
_ACCOUNTS_FROM = len(FACTS) + len(replay.COLUMNS) + 1

_ASKED = Hot(
    select(
        *FACTS,
        *replay.COLUMNS,
        now_us().label("now"),
        *(
            table.c[name].label(f"{name}_{rank.name}")
            for rank, table in _CHARGED
            for name in _STANDING
        ),
    )
    .select_from(
        WITH_CAP.outerjoin(query, replay.HAS_KEY)
        .outerjoin(
            _own,
            and_(
                _own.c.rank == int(AccountRank.ANALYST_ON_DATASET),
                _own.c.dataset_id == _d.id,
                _own.c.analyst_id == _analyst,
            ),
        )
        .outerjoin(
            _overall,
            and_(
                _overall.c.rank == int(AccountRank.ANALYST),
                _overall.c.dataset_id == 0,
                _overall.c.analyst_id == _analyst,
            ),
        )
    )
    .where(_d.name == bindparam("name"))
)


@dataclass(slots=True)
class Asked:
    """A dataset that the analyst may see, and what stood in the accounts at the same moment.

    ``public`` is None until the node list has been uploaded, ``version`` 0 without records;
    ``names`` are those of its nodes, where they have to be fetched from a store.
    """

    id: int
    name: str
    version: int
    public: Dataset | None
    names: DistantLabels | None
    _row: Any

    def refusal(self, charge: PrivacyLoss) -> Refusal | None:
        """Why the ledger would have refused a new query then; None also for a key it knows.

        The guard of the charge decides on its own later. To be refused by what was read costs no
        transaction, and is right: the key was new and the charge did not fit at one moment
        between the request and its reply.
        """
        if self._row.query_id is not None or self._row[_ACCOUNTS_FROM] is None:
            return None  # without an account of one's own, that is what the ledger says
        for number, (rank, _) in enumerate(_CHARGED):
            standing = self._row[_ACCOUNTS_FROM + number * len(_STANDING) :][: len(_STANDING)]
            frozen, lim_eps, lim_delta, charged_eps, charged_delta = standing
            if frozen is None:
                continue  # there is no such account, and the ledger knows what that means
            fits = charged_eps + charge.epsilon_nano <= lim_eps
            if frozen or not fits or charged_delta + charge.delta_atto > lim_delta:
                return refusal(rank, *standing, charge=charge)
        return None


class Asking:
    """Looks up what is asked of one database; safe to share between threads."""

    def __init__(self, database: Database, datasets: Datasets, ledger: Ledger) -> None:
        self._database, self._datasets, self._ledger = database, datasets, ledger

    def look_up(
        self, name: str, analyst: User, key: str | None, body_hash: bytes
    ) -> Replay | Asked:
        """The stored reply under the key, or the dataset of that name.

        Raises: NotFound when there is none or the analyst may not see it; KeyReused, StillRunning,
        QueryReleased.
        """
        rows = self._database.look_up(_ASKED, name=name, analyst=analyst.id, key=key)
        if not rows:
            if key is not None:
                # No dataset was ever forgotten: the key can only belong to another request.
                self._ledger.replay(analyst.id, key, body_hash)
            raise NotFound
        (row,) = rows
        if row.query_id is not None:
            found = replay.judge(row, body_hash, self._ledger.failure_body)
            if isinstance(found, Replay):
                return found
        # Before node lists are opened (``Datasets.find``).
        granted = "analyst" in analyst.roles and row[_ACCOUNTS_FROM] is not None
        if not (granted or sees_ungranted(row, analyst)):
            raise NotFound
        return Asked(row.id, row.name, row.version, *self._datasets.facts(row), row)
