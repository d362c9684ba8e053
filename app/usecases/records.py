"""Records and node lists of a dataset: its owner uploads them and withdraws them."""

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
    """A body that is still on its way, and its form as the sender names it."""

    content: AsyncIterator[bytes]
    media_type: str
    gzipped: bool


async def take_nodes(services: Services, caller: Caller, name: str, delivery: Delivery) -> NodesOut:
    """Read a list of nodes, which names those of a graph before its first records.

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
        )
    return NodesOut(dataset=name, nodes=len(labels))


async def take_records(
    services: Services, caller: Caller, name: str, delivery: Delivery
) -> UploadOut:
    """Read records and publish them as a new version, under the same accounts.

    A preparation that takes longer than the wait for uploads goes on after this has returned.
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
        # From here on the preparation removes the file.
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
    """End queries of the records; the ledger and stored answers stay.

    Raises: NotFound, NoRecords.
    """
    require(caller, "owner")
    owned(services, caller, name)
    services.datasets.withdraw(name, actor=caller.user)
    services.uploads.tidy(name)


def _check_takes_nodes(stored: StoredDataset) -> None:
    """Only a graph whose nodes have no names yet takes a list of them."""
    if stored.description.get("kind") != "graph":
        msg = "only graphs take a list of nodes"
        raise InvalidRequest.at("path", "name", type="kind", msg=msg)
    domain = graph_domain(stored.public)
    if domain is not None and (domain.labels is not None or stored.version):
        raise AlreadyExists("the nodes of this dataset are known already")


def _check_fits(stored: StoredDataset, nodes: int) -> None:
    """The list may not contradict what was registered."""
    most = stored.description.get("max_degree")
    if most is not None and most >= nodes:
        msg = f"a max_degree of {most} needs more nodes than that"
        raise InvalidRecords([(("upload",), "count", msg)])
    domain = graph_domain(stored.public)
    if domain is not None and domain.nodes != nodes:
        msg = f"the graph was registered with {domain.nodes} nodes"
        raise InvalidRecords([(("upload",), "count", msg)])
