"""Datasets: their public descriptions, fixed at registration, and the version that queries read."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, Connection, Row, and_, bindparam, or_, select, update

from accounting.account import AccountRank, Limit
from mechanisms.model.domains import Domain, GraphDomain, NeighbouringRelation, TableDomain
from storage.catalogue import retention, versions
from storage.catalogue.dataset_facts import Facts, load_facts
from storage.catalogue.dataset_rows import (
    DATASETS,
    StoredDataset,
    UploadState,
    granted,
    granted_to,
    upload_state,
)
from storage.catalogue.dataset_sources import Attachment, attachment_of, set_attachment
from storage.catalogue.dataset_states import digest_of_labels, record_dataset, record_version
from storage.catalogue.descriptions import Labels, encode_domain
from storage.catalogue.person_keys import delete_person_key, person_key
from storage.catalogue.replacement import hold_description, replace_description
from storage.database.database import Database
from storage.database.expressions import insert_once, now_us
from storage.database.pages import Page, page_of
from storage.database.statements import Hot
from storage.database.tables import dataset, dataset_version
from storage.errors import (
    AlreadyExists,
    CommitUnknown,
    DescriptionReplaced,
    NotFound,
    StorageError,
)
from storage.ledger.accounts import LIMITS, AccountKey
from storage.ledger.freezing import OPERATOR
from storage.ledger.limits import open_account
from storage.people.users import User
from storage.records.data_folder import Files
from storage.records.open_records import OpenRecords
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
        self.opened = OpenRecords(files, self._folder_of)
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
            dataset_id = self._id(connection, name)
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
            dataset_id = self._id(connection, name)
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

    # ---------------------------------------------------------------- uploads and versions

    def begin_upload(self, name: str, *, actor: User, created_us: int | None = None) -> int:
        """The id of a new upload. ``keep_upload`` must follow every few seconds.

        ``created_us``: the moment of the description by which the records are to be prepared.
        Raises: NotFound; UploadRunning while another upload has its lease; DescriptionReplaced if
            the dataset has another description by now.
        """

        def work(connection: Connection) -> int:
            dataset_id = self._id(connection, name)
            if created_us not in (None, hold_description(connection, dataset_id)):
                raise DescriptionReplaced("the description was replaced meanwhile")
            upload = versions.begin_upload(connection, dataset_id)
            detail = {"upload": upload}
            record_dataset(connection, actor.id, dataset_id, "records.upload", detail)
            return upload

        return self._database.write(work)

    def keep_upload(self, upload: int, detail: Mapping[str, Any] | None = None) -> None:
        """Heartbeat: extends the lease of an upload by a minute, and stores its progress."""
        self._database.write(lambda connection: versions.hold_upload(connection, upload, detail))

    def claim_upload(self, upload: int) -> bool:
        """Take over an upload whose lease expired. Returns False for any other upload.

        ``keep_upload`` must follow every few seconds.
        """
        hold = partial(versions.hold_upload, upload_id=upload, if_expired=True)
        return self._database.write(hold)

    def person_key(self, dataset_id: int) -> bytes:
        """The secret by which rows of persons are chosen, for preparing an upload.

        Its first use draws it, and a withdrawal deletes it.
        """
        return self._database.write(lambda connection: person_key(connection, dataset_id))

    def attachment(self, dataset_id: int) -> Attachment | None:
        """The source from which the dataset's owner pulls records, and its table."""
        with self._database.read() as connection:
            return attachment_of(connection, dataset_id)

    def attach(self, name: str, attachment: Attachment | None, *, actor: User) -> None:
        """Replace the source of a dataset; None removes it. Raises: NotFound.

        The audit trail names the source, but not its table.
        """

        def work(connection: Connection) -> None:
            dataset_id = self._id(connection, name)
            set_attachment(connection, dataset_id, attachment)
            detail = {"source": None if attachment is None else attachment.source}
            record_dataset(connection, actor.id, dataset_id, "dataset.source", detail)

        self._database.write(work)

    def refuse_upload(self, upload: int, detail: Mapping[str, Any]) -> None:
        """End an upload. Only the owner may see ``detail``."""
        self._database.write(lambda connection: versions.refuse_upload(connection, upload, detail))

    def publish(
        self,
        upload: int,
        folder: Path,
        *,
        actor: User,
        rows: int | None = None,
        manifest: bytes | None = None,
    ) -> int:
        """Publish a prepared folder as the next version. Returns the number of the version.

        ``rows``: the row count of a table under the relation ``replace``, else None. ``manifest``:
        the digest of the manifest of its arrays, 32 bytes, which the journal states. After an error
        nothing has changed, and ``folder`` has its old path, unless the commit is unknown.
        Raises: NotFound if the upload has ended; InvalidRecords if an earlier version fixed
            another row count; StoreFailed; CommitUnknown.
        """
        moved: list[tuple[int, int]] = []

        def take_back() -> None:
            if moved:
                self._files.take_back(folder, *moved.pop())

        def work(connection: Connection) -> int:
            take_back()
            dataset_id, version = versions.next_version(connection, upload, rows, remote, manifest)
            action, detail = "records.publish", {"version": version}
            record_version(connection, actor.id, dataset_id, version, action)
            record_dataset(connection, actor.id, dataset_id, action, detail, in_trail=False)
            self._files.publish(folder, dataset_id, version)
            moved.append((dataset_id, version))
            return version

        with self._files.keep(folder, upload) as remote:
            try:
                return self._database.write(work)
            except CommitUnknown:
                raise  # the version may be published, so its folder must stay
            except BaseException:
                take_back()
                raise

    def needed_versions(self, dataset_id: int | None = None) -> Sequence[Any]:
        """The versions that must be open: of one dataset or of all (``versions.needed_versions``).

        Raises: Busy if the database cannot be reached now.
        """
        with self._database.read() as connection:
            return versions.needed_versions(connection, dataset_id)

    def open_version(self, row: Any, **how: Any) -> None:
        """Open a version of ``needed_versions``; ``how`` are the keywords of ``OpenRecords.open``.

        A version of an earlier release has no digest of its manifest yet: the first opening stores
        it, with its fact in the journal.
        Raises: the errors of ``OpenRecords.open``; Busy if the digest cannot be stored now.
        """
        public = self.facts(row).public
        assert public is not None, "records are published after the node list"
        expected = row.manifest_digest
        self.opened.open(row.id, row.version, public.domain, expected=expected, **how)
        if expected is None:
            self._adopt(row.id, row.version, self.opened.manifest(row.id, row.version))

    def _adopt(self, dataset_id: int, version: int, manifest: bytes) -> None:
        def work(connection: Connection) -> None:
            versions.lock_cap(connection, dataset_id)
            if versions.adopt_manifest(connection, dataset_id, version, manifest):
                record_version(connection, OPERATOR, dataset_id, version, "records.adopt")

        self._database.write(work)

    def withdraw(self, name: str, *, actor: User) -> None:
        """Let no further query read the records. The ledger and the stored answers stay.

        The secret by which rows of persons were chosen is deleted.

        Raises: NotFound; NoRecords if there is nothing to withdraw.
        """

        def work(connection: Connection) -> None:
            dataset_id = self._id(connection, name)
            detail = {"version": versions.withdraw(connection, dataset_id)}
            delete_person_key(connection, dataset_id)
            record_dataset(connection, actor.id, dataset_id, "records.withdraw", detail)

        self._database.write(work)

    def versions(self, dataset_id: int) -> list[versions.Version]:
        """All published versions, newest first. Only the owner may see them."""
        with self._database.read() as connection:
            return versions.published_versions(connection, dataset_id)

    def remove_unused(self, name: str | None = None) -> list[int]:
        """Delete the arrays of versions that no query can open. Returns their numbers.

        Without a name it covers all datasets, because a running query may have kept arrays from
        an earlier removal. Raises: the last OSError or StorageError, after trying all versions.
        """
        with self._database.read() as connection:
            dataset_id = None if name is None else self._id(connection, name)
            unused = versions.removable_versions(connection, dataset_id)
        failed: OSError | StorageError | None = None
        for dataset_id, version, folder in unused:
            self.opened.forget(dataset_id, version)
            try:
                self._files.remove_version(dataset_id, version, folder)
            except (OSError, StorageError) as error:
                failed = error  # The error is raised after the loop has tried the other versions.
                continue
            self._database.write(partial(versions.mark_removed, dataset_id, version))
        if failed is not None:
            raise failed
        return [version for _, version, _ in unused]

    def claim_files(self) -> None:
        """Record this ledger as the owner of the files. Raises: OtherLedger."""
        with self._database.read() as connection:
            ledger = retention.ledger_name(connection)
        self._files.claim(ledger)

    def sweep(self) -> None:
        """Remove files of crashed processes, and files of an object store that no row names.

        Raises: StoreFailed, Busy; then the caller must call it again.
        """

        def references() -> References | None:
            self._database.write(retention.end_lost_uploads)
            with self._database.read() as connection:
                return retention.read_references(connection)

        self._files.sweep(references)

    # ---------------------------------------------------------------- helpers

    def _id(self, connection: Connection, name: str) -> int:
        id = connection.execute(select(_d.id).where(_d.name == name)).scalar_one_or_none()
        if id is None:
            raise NotFound("there is no such dataset")
        return int(id)

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

    def _folder_of(self, dataset_id: int, version: int) -> str | None:
        """The folder of a version in an object store; None if it is in a data folder."""
        v = dataset_version.c
        folders = select(v.folder).where(v.dataset_id == dataset_id, v.version == version)
        with self._database.read() as connection:
            return connection.execute(folders).scalar_one_or_none()


def sees_ungranted(dataset: StoredDataset | Row[Any], user: User) -> bool:
    """True if ``user`` may see the dataset without an account for it."""
    if user.roles & {"admin", "auditor"}:
        return True
    return "owner" in user.roles and dataset.owner_id == user.id
