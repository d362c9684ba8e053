"""Made-up records of a dataset, for code that is written before any budget is spent."""

from app.contract.datasets import DatasetName
from app.contract.errors import InvalidRequest
from app.contract.record_forms import MadeUpFormat
from app.identity.callers import Caller
from app.usecases import datasets
from app.usecases.services import Services
from app.usecases.visibility import visible
from storage.errors import NoRecords, NotFound
from storage.ingest.made_up import made_up, width

#: The most cells (records times attributes) of one reply, which take about a second.
MAX_CELLS = 1_000_000


def mock(services: Services, caller: Caller, name: str, rows: int, form: MadeUpFormat) -> bytes:
    """A file of at most ``rows`` made-up records, drawn from the public description alone.

    Raises: NotFound; NoRecords while the nodes of a graph are unknown; InvalidRequest.
    """
    if isinstance(datasets.describe(services, caller, name).view, DatasetName):
        # An admin may see only the name of this dataset, and not the description from which records
        # would be made up.
        raise NotFound
    dataset = visible(services, caller, name)
    if dataset.public is None:
        raise NoRecords(dataset.name)
    most = MAX_CELLS // width(dataset.public.domain)
    if rows > most:
        raise InvalidRequest.at("query", "rows", type="too_many", msg=f"at most {most} rows")
    return made_up(dataset.public.domain, rows, form)
