"""Uploads of a dataset's records and node lists by its owner, and the withdrawal of records."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from app.contract.datasets import NodesOut, UploadOut, graph_domain
from app.contract.errors import InvalidRequest, NodesMissing
from app.identity.callers import Caller
from app.usecases.services import Services
from app.usecases.visibility import owned, require
from storage.catalogue.datasets import StoredDataset
from storage.errors import AlreadyExists, InvalidRecords
from storage.ingest.media import form_of
from storage.ingest.node_list import read_node_list


@dataclass(frozen=True)
class Delivery:
    """The stream of an upload's bytes, and the media type and encoding that the sender declared."""

    content: AsyncIterator[bytes]
    media_type: str
    gzipped: bool


async def take_nodes(services: Services, caller: Caller, name: str, delivery: Delivery) -> NodesOut:
    """Read the list that names the nodes of a graph, before the first records of the graph.

    Raises: NotFound, AlreadyExists, InvalidRequest, InvalidRecords, TooLarge, BodyTooSlow,
        UnsupportedMediaType.
    """
    require(caller, "owner")
    form_of(delivery.media_type, delivery.gzipped)
    stored = await run_in_threadpool(owned, services, caller, name)
    _check_takes_nodes(stored)
    limit = services.settings.decompressed_limit
    with ExitStack() as closing:
        path = await services.uploads.receive(delivery.content, closing)
        labels = await run_in_threadpool(
            read_node_list, path, gzipped=delivery.gzipped, limit=limit
        )
        _check_fits(stored, len(labels))
        await run_in_threadpool(
            services.datasets.set_nodes,
            name,
            labels,
            max_degree=stored.description.get("max_degree"),
            actor=caller.user,
            created_us=stored.created_us,
        )
    return NodesOut(dataset=name, nodes=len(labels))


async def take_records(
    services: Services, caller: Caller, name: str, delivery: Delivery
) -> UploadOut:
    """Read records and publish them as a new version; the accounts of the dataset stay the same.

    A preparation that takes longer than the wait for uploads continues after this returns.
    Raises: NotFound, NodesMissing, UploadRunning, NoRecords, InvalidRecords, TooLarge,
        BodyTooSlow, UnsupportedMediaType.
    """
    require(caller, "owner")
    form_of(delivery.media_type, delivery.gzipped)
    stored = await run_in_threadpool(owned, services, caller, name)
    if stored.public is None:
        raise NodesMissing
    with ExitStack() as closing:
        path = await services.uploads.receive(delivery.content, closing)
        # From here on the preparation of the records removes the uploaded file, so leaving this
        # block must not remove it.
        closing = closing.pop_all()
    version = await services.uploads.publish(
        stored,
        stored.public,
        path,
        closing,
        media_type=delivery.media_type,
        gzipped=delivery.gzipped,
        actor=caller.user,
    )
    if version is None:
        return UploadOut(dataset=stored.name, version=stored.version, status="preparing")
    return UploadOut(dataset=stored.name, version=version, status="ready")


def withdraw(services: Services, caller: Caller, name: str) -> None:
    """Withdraw the records, so that queries read them no longer; ledger and answers stay.

    Raises: NotFound, NoRecords.
    """
    require(caller, "owner")
    owned(services, caller, name)
    services.versions.withdraw(name, actor=caller.user)
    services.uploads.tidy(name)


def _check_takes_nodes(stored: StoredDataset) -> None:
    """Raises: InvalidRequest if the dataset is no graph; AlreadyExists if its nodes have names."""
    if stored.description.get("kind") != "graph":
        msg = "only graphs take a list of nodes"
        raise InvalidRequest.at("path", "name", type="kind", msg=msg)
    domain = graph_domain(stored.public)
    if domain is not None and (domain.labels is not None or stored.version):
        raise AlreadyExists("the nodes of this dataset are known already")


def _check_fits(stored: StoredDataset, nodes: int) -> None:
    """Raises: InvalidRecords if a list of ``nodes`` nodes contradicts the registration."""
    most = stored.description.get("max_degree")
    if most is not None and most >= nodes:
        msg = f"a max_degree of {most} needs more nodes than that"
        raise InvalidRecords([(("upload",), "count", msg)])
    domain = graph_domain(stored.public)
    if domain is not None and domain.nodes != nodes:
        msg = f"the graph was registered with {domain.nodes} nodes"
        raise InvalidRecords([(("upload",), "count", msg)])
