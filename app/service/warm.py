"""Compile every kernel ahead of its first use, and time this machine.

``python -m app.service.warm`` does it at set-up, and every process with deadlines at its start.

Compiled code is cached on disk, so running this at set-up saves the first start about a minute.
Each process still loads what is cached, which takes some seconds. Numba compiles a kernel once per
combination of argument types. So this module prepares synthetic records of every stored type, and
computes every example of every query kind on them in the same way as the service.
"""

import gc
import json
import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TextIO

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from accounting.rho import FEMTO
from app.queries import QUERY, QUERY_KINDS, QueryContext
from app.service.listening import COLLECT_AFTER
from app.service.made_up import open_domain, stored, table_domain, texts
from app.service.speeds import MachineSpeeds
from app.telemetry import logs
from mechanisms.kernels.columns import stacked
from mechanisms.kernels.contingency import level_counts
from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.preparation import preparation_work, prepare_graph, prepare_totals
from mechanisms.kernels.subsets import purest_levels, subset_sums
from mechanisms.model.domains import (
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    PrefixDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords, PrefixRecords, Records, TableRecords
from mechanisms.noise.keystream import SystemRandomness

ROWS = 8
#: ε of each warm-up query: 1000, in units of 10⁻⁹. Trees split as few as eight rows only if the
#: noise is small.
EPSILON_NANO = 1000 * 10**9
#: ρ of each query that adds Gaussian noise: 1.
RHO_FEMTO = FEMTO
#: Set as soon as this process has loaded all compiled kernels.
LOADED = threading.Event()


def warm() -> None:
    """Run every compiled kernel on small synthetic records."""
    deque(steps(), maxlen=0)


def load() -> Iterator[None]:
    """Runs ``steps`` unless this process has loaded all kernels already; sets ``LOADED``."""
    if not LOADED.is_set():
        yield from steps()
        spare_the_collector()
        LOADED.set()


def spare_the_collector() -> None:
    """Exclude all objects so far from garbage collections, for the life of this process.

    Most of them are modules and kernels, which are never freed. A full collection that visits them
    stops every query for a fifth of a second, so that deadlines are missed. During the measurement
    of speeds it would raise the price of the kind of work that it happens to interrupt. Other
    collections are as rare from now on as in a service.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def steps() -> Iterator[None]:
    """Runs every compiled kernel on small synthetic records, one query per step."""
    randomness, executor = SystemRandomness(), Inline()
    _count_large_domains()
    for records, dataset, body, is_gaussian in _examples():
        query = QUERY.validate_json(json.dumps(body))
        loss = (
            PrivacyLoss(0, 0, RHO_FEMTO, 1)
            if is_gaussian
            else PrivacyLoss(EPSILON_NANO, query.delta_atto())
        )
        query.compute(QueryContext(records, dataset, loss, randomness, executor))
        yield


def show_progress(out: TextIO) -> None:
    """Runs ``steps`` and writes the share that is done into one line."""
    total = sum(1 for _ in _examples())
    for number, _ in enumerate(steps(), start=1):
        out.write(f"\rrun: kernels: {number * 100 // total} %")
        out.flush()
    out.write("\n")


def _examples() -> Iterator[tuple[Records, Dataset, Any, bool]]:
    """The records, the dataset and the body of each example, and whether its noise is Gaussian."""
    for records, dataset in stored_types():
        for kind in QUERY_KINDS.values():
            for body in kind.examples.every(dataset):
                yield records, dataset, body, False
            for body in kind.examples.gaussian(dataset):
                yield records, dataset, body, True


def _count_large_domains() -> None:
    """Counts combinations of attributes whose tables would not fit; no example needs this."""
    codes = table_records().codes
    for last, levels in (("more", 3), ("many", 300)):
        columns = [(codes["class"], 2), (codes["few"], 2), (codes[last], levels)]
        together, sizes = stacked(columns), np.array([2, 2, levels], np.int64)
        sets, sums = np.array([[0, 1]], np.int64), np.arange(ROWS + 1)
        subset_sums(together, sizes, sets, sums, Inline())
        purest_levels(together, sizes, 2, sets, Inline(), ROWS)


def stored_types() -> list[tuple[Records, Dataset]]:
    """Synthetic records and their datasets, for every kind of records and relation."""
    rows, table = table_records(), table_domain()
    of_persons = replace(table, person="person")
    add_remove = Dataset("warm", NeighbouringRelation.ADD_REMOVE, of_persons)
    replaced = replace(table, rows=ROWS, max_rows=None, min_rows=0)
    with_open = replace(open_domain(), max_rows=ROWS)
    return [
        (graph_records(), Dataset("warm", NeighbouringRelation.EDGE, GraphDomain(5, 4))),
        (rows, add_remove),
        (rows, Dataset("warm", NeighbouringRelation.REPLACE, replaced)),
        (rows, Dataset("warm", NeighbouringRelation.ADD_REMOVE, with_open)),
        (
            PrefixRecords(2),
            Dataset("warm", NeighbouringRelation.PREFIX, PrefixDomain((1.0, 2.0, 4.0))),
        ),
    ]


def graph_records() -> GraphRecords:
    """A fan graph with five nodes, so that counting by paths and by a matrix both run."""
    sources = np.array([0, 0, 0, 0, 1, 2, 3], np.int32)
    targets = np.array([1, 2, 3, 4, 2, 3, 4], np.int32)
    indptr, indices = compressed_rows(sources, targets, 5)
    preparation_work(indptr, indices)
    columns = prepare_graph(indptr, indices, Inline())
    totals = prepare_totals(indptr, indices, columns["co_degree"], Inline())
    return GraphRecords(indptr, indices, columns, totals)


def table_records() -> TableRecords:
    """A table with codes of one byte and of two bytes, and a numeric column."""
    numbers = np.arange(ROWS)
    codes = {
        "class": stored(numbers % 2, np.uint8),
        "few": stored(numbers % 2, np.uint8),
        "more": stored(numbers % 3, np.uint8),
        "many": stored(numbers, np.uint16),
        "number": stored(numbers // 4, np.uint8),
        "open": stored(numbers, np.int32),
    }
    level_counts(codes["many"], 300)
    number = stored(numbers, np.float64)
    persons = stored(numbers // 2, np.int32)
    return TableRecords(
        codes, {"number": number}, {"number": number}, persons=persons, open_values=texts(ROWS)
    )


if __name__ == "__main__":
    logs.configure()
    if sys.stderr.isatty():
        show_progress(sys.stderr)
    else:
        warm()
    spare_the_collector()
    deque(MachineSpeeds().steps(), maxlen=0)
