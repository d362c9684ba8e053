"""The plain English question of a stored query, for the lists and pages that show it."""

from pydantic import ValidationError

from app.contract.errors import UnsupportedQuery
from app.engine.requests import written
from app.queries import QUERY
from app.usecases.services import Services
from storage.catalogue.datasets import StoredDataset
from storage.queries.history import QueryRow


class Questions:
    """Writes the questions of queries, and reads each dataset of a list once.

    Every row must be visible to the caller. A question is made of the request and the public
    description of the dataset. Records and answers are never read.
    """

    def __init__(self, services: Services) -> None:
        self._find = services.datasets.find
        self._datasets: dict[str, StoredDataset] = {}

    def of(self, row: QueryRow) -> str | None:
        """The question of a query; None if this version of the service does not offer it."""
        if row.dataset not in self._datasets:
            self._datasets[row.dataset] = self._find(row.dataset)
        public = self._datasets[row.dataset].public
        try:
            query = QUERY.validate_json(written(row.request["query"]))
            return None if public is None else query.question(public, row.version)
        except (ValidationError, UnsupportedQuery):
            return None
