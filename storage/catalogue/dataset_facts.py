"""The public facts of a dataset, which a process reads once because they hardly ever change."""

import json
from typing import Any, NamedTuple

from sqlalchemy import select

from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from storage.catalogue.descriptions import Labels, decode_domain
from storage.database.database import Database
from storage.database.tables import dataset
from storage.files.labels import DistantLabels
from storage.records.data_folder import Files

_d = dataset.c
_FACTS = select(
    *(_d.name, _d.description, _d.domain, _d.neighbouring, _d.records_per_person),
    _d.nodes_folder,
)


class Facts(NamedTuple):
    """The public description of a dataset, as served and as a domain.

    ``public`` is None until the node list is uploaded. ``names``: the node names of a graph, if
    they are in an object store.
    """

    description: dict[str, Any]
    public: Dataset | None
    names: DistantLabels | None


def load_facts(
    database: Database,
    files: Files,
    dataset_id: int,
    domain_length: int,
    rows: int | None,
    created_us: int,  # noqa: ARG001 - a part of the key
) -> Facts:
    """The facts of a dataset.

    ``domain_length`` and ``rows`` are in its row and change at most once for one description, whose
    moment is ``created_us``. As arguments they are the key under which callers cache the facts.
    """
    with database.read() as connection:
        row = connection.execute(_FACTS.where(_d.id == dataset_id)).one()
    relation = NeighbouringRelation(row.neighbouring)
    description = json.loads(row.description)
    if relation is NeighbouringRelation.REPLACE and rows is not None:
        description["rows"] = rows
    if not domain_length:
        return Facts(description, None, None)

    def labels(length: int) -> Labels:
        return files.labels(dataset_id, row.nodes_folder, length)

    domain = decode_domain(row.domain, labels=labels, rows=rows)
    names = domain.labels if isinstance(domain, GraphDomain) else None
    least = description.get("minimum_count", 0)
    return Facts(
        description,
        Dataset(row.name, relation, domain, row.records_per_person, least),
        names if isinstance(names, DistantLabels) else None,
    )
