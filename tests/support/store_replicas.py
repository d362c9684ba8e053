"""Replicas of a service that share one ledger and one store of prepared records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mechanisms.model.domains import GraphDomain, NeighbouringRelation
from storage.catalogue.datasets import Datasets
from storage.catalogue.record_versions import RecordVersions
from storage.errors import StoreFailed
from storage.files.arrays import write_arrays
from storage.s3.remote import RemoteFiles
from tests.support.stores import StoreProcess
from tests.support.world import World, allowance

DOMAIN = GraphDomain(nodes=4, max_degree=3)
NAMED = GraphDomain(4, 3, ["a", "b", "c", "d"])


class Replica:
    """The datasets of one database as one of several services has them."""

    def __init__(self, world: World, server: StoreProcess, folder: Path, address: str) -> None:
        self.store = server.cached(folder, address)
        self.files = RemoteFiles(folder, self.store)
        self.datasets = Datasets(world.database, self.files)
        self.versions = RecordVersions(world.database, self.files, self.datasets)

    def publish(self, world: World, name: str, value: int) -> None:
        upload = self.versions.begin_upload(name, actor=world.owner)
        self.versions.publish(upload, self.prepared(name, value), actor=world.owner)

    def prepared(self, name: str, value: int) -> Path:
        stored = self.datasets.find(name)
        staging = self.files.staging_folder(stored.id)
        arrays = {"indptr": np.full(5, value), "indices": np.arange(3)}
        write_arrays(staging, "graph", arrays)
        return staging

    def records(self, name: str) -> Any:
        """The records as a query reads them, after the service has opened them."""
        stored = self.datasets.find(name)
        self.versions.opened.open(stored.id, stored.version, DOMAIN)
        return self.versions.opened.get(stored.id, stored.version)

    def names(self, name: str = "graph") -> list[Any]:
        dataset = self.datasets.find(name)
        assert dataset.public is not None
        return list(dataset.public.domain.labels)  # type: ignore[union-attr, arg-type]

    def tops(self) -> set[str]:
        """The first parts of all names in the store."""
        return {name.partition("/")[0] for name in self.store.names("")}


def register(
    world: World, replica: Replica, name: str = "graph", domain: GraphDomain | None = NAMED
) -> None:
    replica.datasets.register(
        name,
        owner=world.owner,
        description={"name": name, "kind": "graph"},
        domain=domain,
        neighbouring=NeighbouringRelation.EDGE,
        records_per_person=1,
        cap=allowance(100),
    )


def fails(*_: object) -> None:
    raise StoreFailed("the store of prepared records cannot be used now")
