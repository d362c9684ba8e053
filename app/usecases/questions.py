"""The plain English question of a stored query, for the lists and pages that show it."""

from pydantic import ValidationError

from app.contract.errors import UnsupportedQuery
from app.engine.requests import written
from app.queries import QUERY
from app.usecases.services import Services
from storage.catalogue.datasets import StoredDataset
from storage.queries.history import QueryRow


class Questions:
    """Writes the questions of queries. Of a list, it reads each dataset and each text once.

    Every row must be visible to the caller. A question is made of the request and the public
    description of the dataset. Records and answers are never read.
    """

    def __init__(self, services: Services) -> None:
        self._find = services.datasets.find
        self._datasets: dict[str, StoredDataset] = {}
        self._questions: dict[tuple[str, int, str], str | None] = {}

    def of(self, row: QueryRow) -> str | None:
        """The question of a query; None if this version of the service does not offer it."""
        # Many queries of a list differ in their price alone, which is no part of the question. So
        # the cached question of one serves the others.
        key = row.dataset, row.version, written(row.request["query"])
        if key not in self._questions:
            self._questions[key] = self._question(*key)
        return self._questions[key]

    def _question(self, dataset: str, version: int, query: str) -> str | None:
        if dataset not in self._datasets:
            self._datasets[dataset] = self._find(dataset)
        public = self._datasets[dataset].public
        try:
            read = QUERY.validate_json(query)
            return None if public is None else read.question(public, version)
        except (ValidationError, UnsupportedQuery):
            return None
