"""The records of a prefix dataset: one column ``cutoff`` with one integer."""

from collections.abc import Iterable

from mechanisms.model.domains import PrefixDomain
from mechanisms.model.records import PrefixRecords
from storage.files.labels import as_integers
from storage.ingest.batches import Batch
from storage.ingest.refusals import WHOLE, refuse

CUTOFF = "cutoff"


def read_cutoff(batches: Iterable[Batch], domain: PrefixDomain) -> PrefixRecords:
    """The records of a file with one row, whose cutoff is the number of public values that apply.

    Raises: InvalidRecords for another number of rows, or a cutoff that is not an integer from 0 to
        the number of public values.
    """
    most = len(domain.public_values)
    cutoffs: list[int] = []
    for batch in batches:
        if len(cutoffs) + batch.rows > 1:
            refuse(WHOLE, "rows", "more than one row")
        column = batch.columns[CUTOFF]
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        numbers, valid = as_integers(column)
        if not valid.all() or not ((numbers >= 0) & (numbers <= most)).all():
            refuse(
                batch.numbering.place(0, CUTOFF),
                "out_of_bounds",
                f"cutoff is an integer from 0 to {most}, the number of public values",
            )
        cutoffs += [int(number) for number in numbers]
    if not cutoffs:
        refuse(WHOLE, "rows", "no row: a cutoff is expected")
    return PrefixRecords(cutoffs[0])
