"""Datasets: their public descriptions, which are fixed once anything was granted or published."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import BigInteger, Connection, Row, and_, bindparam, or_, select, update

from accounting.account import AccountRank, Limit
from mechanisms.model.domains import Domain, GraphDomain, NeighbouringRelation, TableDomain
from storage.catalogue.dataset_facts import Facts, load_facts
from storage.catalogue.dataset_rows import (
    DATASETS,
    StoredDataset,
    UploadState,
    granted,
    granted_to,
    id_of,
    upload_state,
)
from storage.catalogue.dataset_sources import Attachment, attachment_of, set_attachment
from storage.catalogue.dataset_states import digest_of_labels, record_dataset
from storage.catalogue.descriptions import Labels, encode_domain
from storage.catalogue.replacement import replace_description
from storage.database.database import Database
from storage.database.expressions import insert_once, now_us
from storage.database.pages import Page, page_of
from storage.database.statements import Hot
from storage.database.tables import dataset
from storage.errors import (
    AlreadyExists,
    NotFound,
)
from storage.ledger.accounts import LIMITS, AccountKey
from storage.ledger.limits import open_account
from storage.people.users import User
from storage.records.data_folder import Files

__all__ = ["Datasets", "StoredDataset", "UploadState"]

_d = dataset.c
_BY_NAME = Hot(DATASETS.where(_d.name == bindparam("name")))
_GRANTED = Hot(
    granted_to(bindparam("analyst", type_=BigInteger)).where(
        granted.dataset_id == bindparam("dataset", type_=BigInteger)
    )
)


class Datasets:
    """The datasets of one database and the names of nodes; safe to share between threads."""

    def __init__(self, database: Database, files: Files) -> None:
        self._database, self._files = database, files
        # A cache of the parsed descriptions of datasets, safe to share between threads. Its entries
        # never become stale, because the key contains values that change whenever a description
        # does.
        self._facts = lru_cache(maxsize=1024)(partial(load_facts, database, files))

    def register(
        self,
        name: str,
        *,
        owner: User,
        description: Mapping[str, Any],
        domain: Domain | None,
        neighbouring: NeighbouringRelation,
        records_per_person: int,
        cap: Limit,
        labels: Labels | None = None,
    ) -> StoredDataset:
        """Store a description permanently, and open the account of its cap.

        ``domain`` is None for a graph whose node list comes later by ``set_nodes``. ``labels``
        default to those of the domain.
        Raises: AlreadyExists; ValueError for repeated labels; StoreFailed; OutOfRoom.
        """
        if isinstance(domain, GraphDomain):
            labels = domain.labels if labels is None else labels
            domain = replace(domain, labels=labels)

        digest = None if labels is None else digest_of_labels(labels)

        def work(connection: Connection, folder: str | None) -> None:
            inserted = connection.execute(
                insert_once(connection.dialect.name, dataset, "name").returning(_d.id),
                {
                    "name": name,
                    "owner_id": owner.id,
                    "description": json.dumps(description, ensure_ascii=False),
                    "domain": None if domain is None else encode_domain(domain),
                    "neighbouring": neighbouring.value,
                    "records_per_person": records_per_person,
                    "fixed_rows": domain.rows if isinstance(domain, TableDomain) else None,
                    "version": 0,
                    "versions": 0,
                    "created_us": connection.execute(select(now_us())).scalar_one(),
                    "nodes_folder": folder,
                },
            ).scalar_one_or_none()
            if inserted is None:
                raise AlreadyExists("the name is taken, or was once: choose another")
            key = AccountKey(int(AccountRank.DATASET), inserted, 0)
            open_account(connection, key, cap, owner.id)
            if labels is not None:
                self._files.write_labels(inserted, labels)
            detail = {"cap": cap.as_dict()}
            record_dataset(connection, owner.id, inserted, "dataset.register", detail, nodes=digest)

        self._write_named(labels, work)
        return self.find(name)

    def replace(
        self,
        name: str,
        *,
        actor: User,
        description: Mapping[str, Any],
        domain: Domain | None,
        neighbouring: NeighbouringRelation,
        records_per_person: int,
        cap: Limit,
    ) -> StoredDataset:
        """Replace the description and the cap of a dataset for which nothing was ever granted.

        Raises: NotFound; AlreadyExists if an account was ever opened, records are published, or
            nodes have names; UploadRunning.
        """

        def work(connection: Connection) -> None:
            dataset_id = id_of(connection, name)
            replace_description(
                connection,
                dataset_id,
                actor_id=actor.id,
                description=description,
                domain=domain,
                neighbouring=neighbouring,
                records_per_person=records_per_person,
                cap=cap,
            )
            detail = {"cap": cap.as_dict()}
            record_dataset(connection, actor.id, dataset_id, "dataset.replace", detail)

        self._database.write(work)
        return self.find(name)

    def find(self, name: str, seen: Callable[[Row[Any]], bool] = lambda _: True) -> StoredDataset:
        """The dataset of that name. Raises: NotFound if there is none or its row is not ``seen``.

        Danger: opening a node list takes time, which would reveal that the dataset exists. ``seen``
        is therefore called before a node list is opened.
        """
        rows = self._database.look_up(_BY_NAME, name=name)
        if not rows or not seen(rows[0]):
            raise NotFound
        return self._stored(rows[0])

    def names(self, ids: Collection[int]) -> dict[int, str]:
        """The names of the datasets with these ids."""
        if not ids:
            return {}
        with self._database.read() as connection:
            rows = connection.execute(select(_d.id, _d.name).where(_d.id.in_(ids)))
            return {row.id: row.name for row in rows}

    def page(
        self, viewer: User, limit: int, cursor: str | None = None, search: str = ""
    ) -> Page[StoredDataset]:
        """The datasets that ``viewer`` may see, newest first. An admin may see the names only.

        ``search``: a part of the name; upper and lower case are alike.
        """
        statement = DATASETS
        if search:
            statement = statement.where(_d.name.icontains(search, autoescape=True))
        if not viewer.roles & {"admin", "auditor"}:
            reasons = []
            if "owner" in viewer.roles:
                reasons.append(_d.owner_id == viewer.id)
            if "analyst" in viewer.roles:
                has_account, only = _d.id.in_(granted_to(viewer.id)), viewer.scope.datasets
                reasons.append(has_account if only is None else has_account & _d.id.in_(only))
            if not reasons:
                return Page([], None)
            statement = statement.where(or_(*reasons))
        return page_of(self._database, statement, [_d.id], limit, cursor, self._stored)

    def ready(self, analyst_id: int) -> frozenset[str]:
        """The names of all datasets with published records for which the analyst has an account."""
        names = select(_d.name).where(_d.version > 0, _d.id.in_(granted_to(analyst_id)))
        with self._database.read() as connection:
            return frozenset(connection.execute(names).scalars())

    def visible_to(self, dataset: StoredDataset | Row[Any], user: User) -> bool:
        """True if ``page`` lists the dataset for ``user``. An admin may see the name only."""
        if sees_ungranted(dataset, user):
            return True
        if "analyst" not in user.roles or not user.scope.admits(dataset.id):
            return False
        return bool(self._database.look_up(_GRANTED, dataset=dataset.id, analyst=user.id))

    def set_nodes(
        self,
        name: str,
        labels: Labels,
        *,
        max_degree: int | None,
        actor: User,
        created_us: int | None = None,
    ) -> StoredDataset:
        """Name the nodes of a graph that was registered without nodes or with only their number.

        Names are permanent. ``max_degree`` defaults to the number of nodes less one.
        ``created_us``: the moment of the description that states ``max_degree``.
        Raises: AlreadyExists if the nodes have names, another number or published records, or the
            description was replaced;
            ValueError for repeated labels or a larger ``max_degree``; StoreFailed; OutOfRoom.
        """
        degree = len(labels) - 1 if max_degree is None else max_degree
        domain = encode_domain(GraphDomain(len(labels), degree, labels))
        counted = encode_domain(GraphDomain(len(labels), degree))
        digest = digest_of_labels(labels)

        def work(connection: Connection, folder: str | None) -> None:
            dataset_id = id_of(connection, name)
            named = update(dataset).where(
                _d.id == dataset_id,
                # Published records name nodes by number. So a list of node names is accepted only
                # before the first version of the records is published.
                or_(_d.domain.is_(None), and_(_d.domain == counted, _d.versions == 0)),
                _d.created_us == (_d.created_us if created_us is None else created_us),
            )
            values = {"domain": domain, "nodes_folder": folder}
            if connection.execute(named.values(values)).rowcount == 0:
                raise AlreadyExists("the nodes of this dataset are known already")
            # This transaction has locked the row of the dataset, so no concurrent transaction can
            # replace the list of node names.
            self._files.write_labels(dataset_id, labels)
            detail = {"nodes": len(labels)}
            record_dataset(connection, actor.id, dataset_id, "dataset.nodes", detail, nodes=digest)

        self._write_named(labels, work)
        return self.find(name)

    def _write_named(
        self, labels: Labels | None, work: Callable[[Connection, str | None], None]
    ) -> None:
        """Copy node names to an object store, if there is one, and then run a transaction.

        ``work`` gets the folder of the names in the store. Copying may take long; inside the
        transaction, all charges would wait for it.
        """
        with self._files.keep_labels(labels) as folder:
            self._database.write(lambda connection: work(connection, folder))

    def attachment(self, dataset_id: int) -> Attachment | None:
        """The source from which the dataset's owner pulls records, and its table."""
        with self._database.read() as connection:
            return attachment_of(connection, dataset_id)

    def attach(self, name: str, attachment: Attachment | None, *, actor: User) -> None:
        """Replace the source of a dataset; None removes it. Raises: NotFound.

        The audit trail names the source, but not its table.
        """

        def work(connection: Connection) -> None:
            dataset_id = id_of(connection, name)
            set_attachment(connection, dataset_id, attachment)
            detail = {"source": None if attachment is None else attachment.source}
            record_dataset(connection, actor.id, dataset_id, "dataset.source", detail)

        self._database.write(work)

    def _stored(self, row: Row[Any]) -> StoredDataset:
        """The dataset in a row with ``storage.catalogue.dataset_rows.COLUMNS``."""
        facts = self.facts(row)
        return StoredDataset(
            id=row.id,
            name=row.name,
            owner_id=row.owner_id,
            owner=row.owner,
            description=dict(facts.description),
            public=facts.public,
            cap=Limit.read([getattr(row, column.name) for column in LIMITS]),
            version=row.version,
            status="ready" if row.version else "empty",
            upload=upload_state(row),
            created_us=row.created_us,
            names=facts.names,
        )

    def facts(self, row: Any) -> Facts:
        """The facts of the dataset in a row of ``FACTS``."""
        return self._facts(row.id, row.domain_length, row.fixed_rows, row.created_us)


def sees_ungranted(dataset: StoredDataset | Row[Any], user: User) -> bool:
    """True if ``user`` may see the dataset without an account for it."""
    if user.roles & {"admin", "auditor"}:
        return True
    return "owner" in user.roles and dataset.owner_id == user.id
