"""Trees over HTTP on real tables: every combination, its charge, and its accuracy on held-out rows.

Starts the service, uploads nine tenths of each table and asks for trees by every criterion and
sensitivity (ID3), and every objective and sensitivity (evolutionary search). The service never says
how good a tree is: rows that were not uploaded are told here. The status is 1 when a charge differs
from ε or from the sum of its steps, or where trees of the defaults are not above the commonest
label. The accuracies go to ``results/tree_http.csv``.

    python -m benchmarks.tree_http --data DIR [--epsilon 1] [--repeats 5]
"""

from __future__ import annotations

import csv
import io
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv

from benchmarks.graphs import data_option
from benchmarks.session import AMPLE, CSV, Session
from benchmarks.tree_data import MAX_ROWS, TreeTable, tree_table
from mechanisms.kernels.forests import confusion
from mechanisms.model.domains import NumericAttribute
from mechanisms.model.forest import forest
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.trees.evolutionary.fitness import SENSITIVITIES
from mechanisms.trees.id3.split_rule import CRITERIA

RESULTS = Path(__file__).parent / "results"
HELD_OUT = 10
Query = dict[str, Any]


def combinations(table: TreeTable) -> Iterator[Query]:
    """Every algorithm by all that it is told apart by; the rest are defaults."""
    for criterion, sensitivity in product(CRITERIA, Sensitivity):
        yield {"algorithm": "id3", "criterion": criterion, "sensitivity": str(sensitivity)}
    for objective, sensitivity in product(("weighted_sum", "pareto"), SENSITIVITIES):
        yield {
            "algorithm": "evolutionary",
            "objective": objective,
            "sensitivity": str(sensitivity),
            "positive_class": table.positive_class,
        }


def described(table: TreeTable) -> dict[str, Any]:
    """The public description; bins by their edges."""
    attributes: list[dict[str, Any]] = []
    for attribute in table.domain.attributes:
        form: dict[str, Any] = {"name": attribute.name}
        if isinstance(attribute, NumericAttribute):
            bounds = [attribute.lower, attribute.upper]
            form |= {"kind": "numeric", "bounds": bounds, "bins": list(attribute.edges)}
        else:
            form |= {"kind": "categorical", "values": list(attribute.values)}
        if attribute.missing is not None:
            form["missing"] = attribute.missing
        attributes.append(form)
    return {
        "name": table.name,
        "kind": "table",
        "neighbouring": "add_remove",
        "max_rows": MAX_ROWS[table.name],
        "attributes": attributes,
        "class_attribute": table.domain.class_attribute,
        "cap": AMPLE,
    }


def as_csv(table: TreeTable, records: TableRecords) -> bytes:
    """Records as an owner would send them; numbers are the middles of their bins."""
    columns = {}
    for attribute in table.domain.attributes:
        codes = records.codes[attribute.name]
        if isinstance(attribute, NumericAttribute):
            columns[attribute.name] = pyarrow.array(records.values[attribute.name])
        else:
            columns[attribute.name] = pyarrow.array(attribute.levels).take(pyarrow.array(codes))
    written = io.BytesIO()
    pyarrow.csv.write_csv(pyarrow.table(columns), written)
    return written.getvalue()


def uploaded(session: Session, table: TreeTable, records: TableRecords) -> None:
    session.send("owner", "POST", "/v1/datasets", json=described(table))
    session.send("owner", "PUT", f"/v1/datasets/{table.name}/budgets/analyst", json=AMPLE)
    path = f"/v1/datasets/{table.name}"
    content = as_csv(table, records)
    reply = session.send("owner", "PUT", f"{path}/records", content=content, headers=CSV)
    while reply["status"] != "ready":
        if reply["status"] == "refused":
            raise RuntimeError(f"the records of {table.name} were refused")
        time.sleep(0.05)
        reply = session.send("owner", "GET", path)


def asked(session: Session, name: str, epsilon: str, query: Query) -> tuple[dict[str, Any], bool]:
    """A tree, and whether its charge and the sum of its steps are ε."""
    body = {"dataset": name, "epsilon": epsilon, "query": {"kind": "tree", **query}}
    reply = session.send("analyst", "POST", "/v1/queries", json=body)
    while reply["status"] == "running":
        headers = {"Prefer": "wait=20"}
        reply = session.send("analyst", "GET", f"/v1/queries/{reply['id']}", headers=headers)
    spent = sum(
        Decimal(step["epsilon"]) * (step["times"] if step["composition"] == "sequential" else 1)
        for step in reply["steps"]
    )
    exact = spent == Decimal(reply["charge"]["epsilon"]) == Decimal(epsilon)
    [tree] = reply["answer"]["trees"]
    return tree, exact


def accuracy(table: TreeTable, held_out: TableRecords, tree: Mapping[str, Any]) -> float:
    """The share of held-out rows of which a tree tells which of two classes they are."""
    flat = forest([tree], table.domain, table.task.classes.name, table.positive_class)
    found = confusion(held_out, flat)
    right = int(found.true_positives[0] + found.true_negatives[0])
    return right / (found.positives + found.negatives)


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--tables", nargs="*", default=list(MAX_ROWS), choices=list(MAX_ROWS))
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--repeats", type=int, default=5, help="answers a mean is taken of")
    options = parser.parse_args()
    ok = True
    lines: list[list[Any]] = []
    with Session.opened(PURSE_RELEASE_INTERVAL="0") as session:
        for name in options.tables:
            table = tree_table(options.data, name)
            order = np.random.default_rng(0).permutation(table.rows)
            held_out = table.taken(order[::HELD_OUT])
            uploaded(session, table, table.taken(np.delete(order, np.s_[::HELD_OUT])))
            classes = held_out.codes[table.task.classes.name]
            commonest = float(np.bincount(classes).max() / classes.size)
            print(f"\n{name}: {classes.size} held-out rows, commonest label {commonest:.1%}")
            for query in combinations(table):
                answers = [asked(session, name, options.epsilon, query)
                           for _ in range(options.repeats)]  # fmt: skip
                found = mean(accuracy(table, held_out, tree) for tree, _ in answers)
                exact = all(charged for _, charged in answers)
                aim = query.get("criterion") or query["objective"]
                default = query["algorithm"] == "id3" and (aim, query["sensitivity"]) == (
                    "gini",
                    "global",
                )
                good = exact and (not default or found > commonest)
                ok &= good
                line = [name, query["algorithm"], aim, query["sensitivity"]]
                lines.append([*line, options.epsilon, f"{found:.4f}"])
                print("  {:13}{:18}{:11}".format(*line[1:]), f"{found:7.1%}",
                      "" if good else "FAILS", flush=True)  # fmt: skip
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "tree_http.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["table", "algorithm", "by", "sensitivity", "epsilon", "accuracy"])
        writer.writerows(lines)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
