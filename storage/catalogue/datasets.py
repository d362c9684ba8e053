"""Datasets: their public descriptions, fixed at registration, and which version queries read."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, Connection, Row, and_, bindparam, or_, select, update

from accounting.account import AccountRank
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import Dataset, Domain, GraphDomain, NeighbouringRelation, TableDomain
from mechanisms.model.records import Records
from storage.catalogue import retention, versions
from storage.catalogue.dataset_rows import (
    DATASETS,
    StoredDataset,
    UploadState,
    granted,
    granted_to,
    upload_state,
)
from storage.catalogue.descriptions import Labels, decode_domain, encode_domain
from storage.database.database import Database
from storage.database.expressions import insert_once, now_us
from storage.database.pages import Page, decode_cursor, page_of
from storage.database.statements import Hot
from storage.database.tables import dataset, dataset_version
from storage.errors import AlreadyExists, CommitUnknown, NotFound, StorageError
from storage.files.labels import DistantLabels
from storage.journal import audit
from storage.ledger.limits import open_account
from storage.people.users import User
from storage.records.data_folder import Files
from storage.records.opened import OpenRecords
from storage.records.retention import References

__all__ = ["Datasets", "StoredDataset", "UploadState"]

_d = dataset.c
_BY_NAME = Hot(DATASETS.where(_d.name == bindparam("name")))
_GRANTED = Hot(
    granted_to(bindparam("analyst", type_=BigInteger)).where(
        granted.dataset_id == bindparam("dataset", type_=BigInteger)
    )
)


class Datasets:
    """The datasets of one database and their folders; safe to share between threads."""

    def __init__(self, database: Database, files: Files) -> None:
        self._database, self._files = database, files
        self._open = OpenRecords(files, self._folder_of)
        self._fixed = lru_cache(maxsize=256)(self._load_fixed)

    def register(
        self,
        name: str,
        *,
        owner: User,
        description: Mapping[str, Any],
        domain: Domain | None,
        neighbouring: NeighbouringRelation,
        records_per_person: int,
        cap: PrivacyLoss,
        labels: Labels | None = None,
    ) -> StoredDataset:
        """Store a description for ever, and open the account of its cap.

        ``domain`` None: a graph whose node list comes by ``set_nodes``. ``labels`` default to
        those of the domain. Raises: AlreadyExists; ValueError for labels that repeat; StoreFailed.
        """
        if isinstance(domain, GraphDomain):
            labels = domain.labels if labels is None else labels
            domain = replace(domain, labels=labels)

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
                raise AlreadyExists("the name is taken, or was once")
            open_account(connection, AccountRank.DATASET, inserted, 0, cap, owner.id)
            if labels is not None:
                self._files.write_labels(inserted, labels)
            audit.record(connection, owner.id, "dataset.register", name, {"cap": cap.as_dict()})

        self._write_named(labels, work)
        return self._existing(name)

    def find(
        self, name: str, seen: Callable[[Row[Any]], bool] = lambda _: True
    ) -> StoredDataset | None:
        """The dataset of that name, if its row is ``seen``.

        That is asked before node lists are opened: who may not see the dataset must not learn from
        how long that takes that there is one.
        """
        rows = self._database.look_up(_BY_NAME, name=name)
        return self.stored(rows[0]) if rows and seen(rows[0]) else None

    def page(self, viewer: User, limit: int, cursor: str | None = None) -> Page[StoredDataset]:
        """The datasets ``viewer`` may see, newest first; of them an admin is shown names only."""
        wanted = DATASETS
        if not viewer.roles & {"admin", "auditor"}:
            reasons = []
            if "owner" in viewer.roles:
                reasons.append(_d.owner_id == viewer.id)
            if "analyst" in viewer.roles:
                reasons.append(_d.id.in_(granted_to(viewer.id)))
            if not reasons:
                return Page([], None)
            wanted = wanted.where(or_(*reasons))
        if cursor is not None:
            wanted = wanted.where(_d.id < decode_cursor(cursor, int)[0])
        with self._database.read() as connection:
            rows = connection.execute(wanted.order_by(_d.id.desc()).limit(limit + 1)).all()
        return page_of(rows, limit, self.stored, lambda row: (row.id,))

    def visible_to(self, dataset: StoredDataset | Row[Any], user: User) -> bool:
        """Whether ``page`` shows it to ``user``; of what an admin sees only the name is shown."""
        if sees_ungranted(dataset, user):
            return True
        if "analyst" not in user.roles:
            return False
        return bool(self._database.look_up(_GRANTED, dataset=dataset.id, analyst=user.id))

    def set_nodes(
        self, name: str, labels: Labels, *, max_degree: int | None, actor: User
    ) -> StoredDataset:
        """Name the nodes of a graph registered without them or by their count, once and for all.

        ``max_degree`` None: the number of nodes less one. Raises: AlreadyExists when the nodes have
        names, another count, or records; ValueError for labels that repeat or a degree above the
        number of nodes less one; StoreFailed.
        """
        degree = len(labels) - 1 if max_degree is None else max_degree
        domain = encode_domain(GraphDomain(len(labels), degree, labels))
        counted = encode_domain(GraphDomain(len(labels), degree))

        def work(connection: Connection, folder: str | None) -> None:
            stored = self._id(connection, name)
            named = update(dataset).where(
                _d.id == stored,
                # Numbers that records have been published under are names for ever.
                or_(_d.domain.is_(None), and_(_d.domain == counted, _d.versions == 0)),
            )
            values = {"domain": domain, "nodes_folder": folder}
            if connection.execute(named.values(values)).rowcount == 0:
                raise AlreadyExists("the nodes of this dataset are known already")
            # This transaction holds the row, so a loser of the race cannot write over the labels.
            self._files.write_labels(stored, labels)
            audit.record(connection, actor.id, "dataset.nodes", name, {"nodes": len(labels)})

        self._write_named(labels, work)
        return self._existing(name)

    def _write_named(
        self, labels: Labels | None, work: Callable[[Connection, str | None], None]
    ) -> None:
        """A transaction that gives a graph the names in a folder, which are in the store by then.

        To send a list may take long, and everybody's charges would wait.
        """
        folder = None if labels is None else self._files.keep_labels(labels)
        try:
            self._database.write(lambda connection: work(connection, folder))
        except CommitUnknown:
            raise  # the graph may have the names
        except BaseException:
            self._files.discard_labels(folder)
            raise

    # ---------------------------------------------------------------- records

    def begin_upload(self, name: str, *, actor: User) -> int:
        """The id of a new upload; ``keep_upload`` must follow every few seconds.

        Raises: NotFound; UploadRunning while another one is alive.
        """

        def work(connection: Connection) -> int:
            begun = versions.begin_upload(connection, self._id(connection, name))
            audit.record(connection, actor.id, "records.upload", name, {"upload": begun})
            return begun

        return self._database.write(work)

    def keep_upload(self, upload: int, detail: Mapping[str, Any] | None = None) -> None:
        """Say that the preparation is alive, for another minute, and how far it is."""
        self._database.write(lambda connection: versions.keep_upload(connection, upload, detail))

    def claim_upload(self, upload: int) -> bool:
        """Take over an upload whose process died; ``keep_upload`` must follow, as for a new one."""
        return self._database.write(lambda connection: versions.claim_upload(connection, upload))

    def refuse_upload(self, upload: int, detail: Mapping[str, Any]) -> None:
        """End an upload; ``detail`` is kept for the owner alone."""
        self._database.write(lambda connection: versions.refuse_upload(connection, upload, detail))

    def publish(self, upload: int, folder: Path, *, actor: User, rows: int | None = None) -> int:
        """Move a prepared folder into place as the next version, and let queries read it.

        ``rows``: the row count of a ``replace`` table, None for everything else. Raises: NotFound
        when the upload is over; InvalidRecords when an earlier version fixed another row count;
        StoreFailed; nothing has changed then, and ``folder`` is where it was.
        """
        moved: list[tuple[int, int]] = []
        kept_in: str | None = None

        def take_back() -> None:
            if moved:
                self._files.take_back(folder, *moved.pop())

        def work(connection: Connection) -> int:
            take_back()
            dataset_id, version = versions.next_version(connection, upload, rows, kept_in)
            name = connection.execute(select(_d.name).where(_d.id == dataset_id)).scalar_one()
            audit.record(connection, actor.id, "records.publish", name, {"version": version})
            self._files.publish(folder, dataset_id, version)
            moved.append((dataset_id, version))
            return version

        try:
            kept_in = self._files.keep(folder, upload)
            return self._database.write(work)
        except CommitUnknown:
            raise  # the version may stand: its folder must stay
        except BaseException:
            take_back()
            self._files.discard(kept_in)
            raise

    def withdraw(self, name: str, *, actor: User) -> None:
        """No more queries on the records; ledger and stored answers stay.

        Raises: NotFound; NoRecords when there is nothing to withdraw.
        """

        def work(connection: Connection) -> None:
            version = versions.withdraw(connection, self._id(connection, name))
            audit.record(connection, actor.id, "records.withdraw", name, {"version": version})

        self._database.write(work)

    def versions(self, dataset_id: int) -> list[versions.Version]:
        """Every version that was ever published, newest first: for the owner alone."""
        with self._database.read() as connection:
            return versions.published_versions(connection, dataset_id)

    def remove_unused(self, name: str | None = None) -> list[int]:
        """Delete the arrays of versions that nobody will open again; which ones they were.

        Without a name of all datasets: a query may have been open when it was last tried.
        """
        with self._database.read() as connection:
            dataset_id = None if name is None else self._id(connection, name)
            unused = versions.removable_versions(connection, dataset_id)
        failed: OSError | StorageError | None = None
        for dataset_id, version, folder in unused:
            self._open.forget(dataset_id, version)
            try:
                self._files.remove_version(dataset_id, version, folder)
            except (OSError, StorageError) as error:
                failed = error  # the others go all the same
                continue
            self._database.write(partial(versions.mark_removed, dataset_id, version))
        if failed is not None:
            raise failed
        return [version for _, version, _ in unused]

    def claim_files(self) -> None:
        """Make the files those of this ledger. Raises: OtherLedger when they are another's."""
        with self._database.read() as connection:
            ledger = retention.ledger_name(connection)
        self._files.claim(ledger)

    def sweep(self) -> None:
        """Remove what crashed processes left, and what no row names of what is in a store.

        Raises: StoreFailed, Busy; it is to be tried again.
        """

        def references() -> References | None:
            self._database.write(retention.end_lost_uploads)
            with self._database.read() as connection:
                return retention.read_references(connection)

        self._files.sweep(references)

    def is_open(self, dataset_id: int, version: int) -> bool:
        """Whether ``records`` finds them at once."""
        return self._open.has(dataset_id, version)

    def forget_gone(self) -> None:
        """Close records whose files have been removed."""
        self._open.forget_gone()

    def version_folder(self, dataset_id: int, version: int) -> Path:
        return self._files.version_folder(dataset_id, version)

    def records(self, dataset_id: int, version: int, domain: Domain) -> Records:
        """The private records of a published version, for a query that was charged.

        Raises: FileNotFoundError, or DamagedFolder when the folder does not fit the domain.
        """
        return self._open.get(dataset_id, version, domain)

    # ---------------------------------------------------------------- helpers

    def _id(self, connection: Connection, name: str) -> int:
        found = connection.execute(select(_d.id).where(_d.name == name)).scalar_one_or_none()
        if found is None:
            raise NotFound("there is no such dataset")
        return int(found)

    def _existing(self, name: str) -> StoredDataset:
        stored = self.find(name)
        assert stored is not None, "datasets are never deleted"
        return stored

    def stored(self, row: Row[Any]) -> StoredDataset:
        """What a row with ``storage.catalogue.dataset_rows.COLUMNS`` in it describes."""
        description, public, names = self._fixed(row.id, row.domain_length, row.fixed_rows)
        return StoredDataset(
            id=row.id,
            name=row.name,
            owner_id=row.owner_id,
            owner=row.owner,
            description=dict(description),
            public=public,
            cap=PrivacyLoss(row.lim_eps_n, row.lim_delta_a),
            version=row.version,
            status="ready" if row.version else "empty",
            upload=upload_state(row),
            created_us=row.created_us,
            names=names,
        )

    def facts(self, row: Any) -> tuple[Dataset | None, DistantLabels | None]:
        """``public`` and ``names`` of the dataset of a row with ``dataset_rows.FACTS`` in it."""
        return self._fixed(row.id, row.domain_length, row.fixed_rows)[1:]

    def _load_fixed(
        self, dataset_id: int, domain_length: int, rows: int | None
    ) -> tuple[dict[str, Any], Dataset | None, DistantLabels | None]:
        """What never changes again once its arguments are what they are."""
        wanted = select(
            *(_d.name, _d.description, _d.domain, _d.neighbouring, _d.records_per_person),
            _d.nodes_folder,
        ).where(_d.id == dataset_id)
        with self._database.read() as connection:
            row = connection.execute(wanted).one()
        relation = NeighbouringRelation(row.neighbouring)
        description = json.loads(row.description)
        if relation is NeighbouringRelation.REPLACE and rows is not None:
            description["rows"] = rows
        if not domain_length:
            return description, None, None

        def labels(length: int) -> Labels:
            return self._files.labels(dataset_id, row.nodes_folder, length)

        domain = decode_domain(row.domain, labels=labels, rows=rows)
        names = domain.labels if isinstance(domain, GraphDomain) else None
        return (
            description,
            Dataset(row.name, relation, domain, row.records_per_person),
            names if isinstance(names, DistantLabels) else None,
        )

    def _folder_of(self, dataset_id: int, version: int) -> str | None:
        """Where a version is in a store."""
        v = dataset_version.c
        wanted = select(v.folder).where(v.dataset_id == dataset_id, v.version == version)
        with self._database.read() as connection:
            return connection.execute(wanted).scalar_one_or_none()


def sees_ungranted(dataset: StoredDataset | Row[Any], user: User) -> bool:
    """Whether ``user`` sees it without an account for it."""
    if user.roles & {"admin", "auditor"}:
        return True
    return "owner" in user.roles and dataset.owner_id == user.id
