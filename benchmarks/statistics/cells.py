"""Speed of tables after preparation.

* Count, sum and mean of 10⁷ rows by three attributes, noise and intervals included, beside polars'
  ``group_by`` of the same exact numbers in the same rounds.
* Counts by one and by two attributes from the stored tables of a version, at growing numbers of
  rows, beside the same query of the rows.
"""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from accounting.privacy_loss import NANO, PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.queries import QUERY, QueryContext
from app.service.warm import warm
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.result import Result
from benchmarks.rounds import Rounds, wall
from mechanisms.kernels.level_counts import all_level_tables
from mechanisms.model.domains import (
    Attribute,
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.executor import Executor
from mechanisms.model.level_tables import split
from mechanisms.model.records import TableRecords
from mechanisms.noise.keystream import SystemRandomness

LEVELS = {"sex": 2, "education": 16, "region": 40}
WORKERS = 2
GROUPED = {
    "kind": "table",
    "by": list(LEVELS),
    "aggregates": [
        {"name": "count"},
        {"name": "sum", "attribute": "age"},
        {"name": "mean", "attribute": "age"},
    ],
}
STORED = {"one": ["region"], "two": ["education", "region"]}


def made_up(rows: int) -> tuple[TableRecords, Dataset]:
    rng = np.random.default_rng(1)
    codes = {name: rng.integers(0, size, rows, dtype=np.uint8) for name, size in LEVELS.items()}
    ages = rng.integers(0, 100, rows).astype(np.float64)
    codes["age"] = (ages >= 50).astype(np.uint8)
    attributes: tuple[Attribute, ...] = (
        *(CategoricalAttribute(name, tuple(map(str, range(n)))) for name, n in LEVELS.items()),
        NumericAttribute("age", 0.0, 100.0, (0.0, 50.0, 100.0)),
    )
    domain = TableDomain(attributes, max_rows=rows)
    dataset = Dataset("made up", NeighbouringRelation.ADD_REMOVE, domain)
    return TableRecords(codes, {"age": ages}), dataset


def answer(
    body: dict[str, Any], records: TableRecords, dataset: Dataset, executor: Executor
) -> object:
    """What a query does after its reservation: compute, and make the answer of it."""
    query, loss = QUERY.validate_json(json.dumps(body)), PrivacyLoss(NANO)
    context = QueryContext(records, dataset, loss, SystemRandomness(), executor)
    return query.compute(context).answer


def run(result: Result, setting: Setting) -> None:
    warm()
    executor = ThreadExecutor(WORKERS)
    beside_polars(result, setting, executor)
    from_stored(result, setting, executor)
    executor.close()


def beside_polars(result: Result, setting: Setting, executor: Executor) -> None:
    import polars as pl

    rows = setting.size(10_000_000, 300_000)
    records, dataset = made_up(rows)
    columns = {name: records.codes[name] for name in LEVELS} | {"age": records.values["age"]}
    frame, age = pl.DataFrame(columns), pl.col("age")
    sums = [pl.len(), age.sum().alias("sum"), age.mean().alias("mean")]
    ways = {
        "ours": wall(partial(answer, GROUPED, records, dataset, executor)),
        "polars": wall(lambda: frame.group_by(list(LEVELS)).agg(sums)),
    }
    rounds = Rounds.of("seconds", ways, setting.times(5))
    rounds.report(result, f"3 aggregates by 3 attributes of {rows:,} rows")
    result.measure("polars / ours", rounds.ratio("polars", "ours"), "×")


def from_stored(result: Result, setting: Setting, executor: Executor) -> None:
    for rows in (100_000, 1_000_000, 10_000_000)[: setting.size(3, 2)]:
        direct, dataset = made_up(rows)
        assert isinstance(dataset.domain, TableDomain)
        tables = split(all_level_tables(direct, dataset.domain, executor), dataset.domain)
        stored = replace(direct, tables=tables)
        for name, by in STORED.items():
            body = {"kind": "table", "by": by}
            ways = {
                "stored": wall(partial(answer, body, stored, dataset, executor)),
                "rows": wall(partial(answer, body, direct, dataset, executor)),
            }
            rounds = Rounds.of("seconds", ways, setting.times(5))
            rounds.report(result, f"{name} attributes, {rows:,} rows")
            label = f"stored: {name} attributes, {rows:,} rows"
            result.measure(label, 1000 * rounds.median("stored"), "ms")


BENCHES = (
    Bench(
        "table_speed",
        "How fast are tables answered after preparation?",
        run,
        60.0,
        ("polars, group_by of the same numbers", "the same query of the rows"),
        (Bar("polars / ours", least=0.5), Bar("stored: *", most=20)),
    ),
)
