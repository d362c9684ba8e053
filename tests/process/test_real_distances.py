"""Distances of real tables over HTTP: every context and sensitivity, one target and all."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.process.session import Session
from tests.support.data import data_file

pytestmark = pytest.mark.data

#: The names of the real tables. The first has missing values and the second has numbers; all others
#: are slow tests.
NAMES = ("soybean", "cmc", "dermatology", "mushroom", "nltcs", "adult_full")
BINS = 5
CONTEXTS = [
    {"context": "mean_su"},
    {"context": "max_relevance"},
    {"context": "max_dependency"},
    *(
        {"context": "baseline", "selection_rule": rule}
        for rule in ("mean_su", "not_redundant", "max_relevance", "max_dependency")
    ),
]


def public(attribute: dict[str, Any], missing: str | None) -> dict[str, Any]:
    described: dict[str, Any] = {"name": attribute["name"], "kind": attribute["kind"]}
    if attribute["kind"] == "categorical":
        described["values"] = attribute["domain"]
    else:
        described |= {"bounds": attribute["domain"], "bins": BINS}
    return described if missing is None else described | {"missing": missing}


@pytest.mark.parametrize(
    "name", [*NAMES[:2], *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES[2:])]
)
def test_every_metric_of_a_real_table(session: Session, name: str) -> None:
    schema = json.loads(data_file(f"{name}.schema.json").read_text())
    dataset = f"{name}_distances"
    attributes = [public(a, schema.get("missing_value")) for a in schema["attributes"]]
    body = {
        "name": dataset,
        "kind": "table",
        "neighbouring": "replace",
        "attributes": attributes,
        "class_attribute": schema["class_attribute"],
        "cap": {"epsilon": "100000", "delta": "0"},
    }
    session.ok("POST", "/v1/datasets", session.owner, json=body)
    session.upload(
        dataset, data_file(f"{name}.csv.gz").read_bytes(), **{"Content-Encoding": "gzip"}
    )
    allowance = {"epsilon": "100000", "delta": "0"}
    session.ok("PUT", f"/v1/datasets/{dataset}/budgets/ada", session.owner, json=allowance)
    taking_part = [a["name"] for a in attributes if a["name"] != schema["class_attribute"]]
    for context, sensitivity, target in product(
        CONTEXTS, ("global", "local"), (schema["class_attribute"], None)
    ):
        query = {"kind": "distance", "target": target, "sensitivity": sensitivity, **context}
        distances = answer(session, dataset, "2.5", query)["distances"]
        assert list(distances) == (taking_part if target is None else [target])
        for one in distances.values():
            matrix = np.array(one["matrix"])
            assert matrix.shape == (len(one["values"]),) * 2
            assert (matrix == matrix.T).all()
            assert (matrix.diagonal() == 0).all()
            assert ((matrix >= 0) & (matrix <= 1)).all()
            assert one["context"]
    for encoding in ("learned_distance", "one_hot"):
        query = {"kind": "clustering", "clusters": 4, "encoding": encoding}
        result = answer(session, dataset, "3", query)
        vectors = [a["vectors"][0] for a in result["encoding"]["attributes"]]
        assert np.array(result["centres"]).shape == (4, sum(map(len, vectors)))


def answer(session: Session, name: str, epsilon: str, query: dict[str, Any]) -> Any:
    """Returns the answer; checks that its steps are those of the quote and add up to the charge."""
    body = {"dataset": name, "epsilon": epsilon, "query": query}
    quoted = session.ok("POST", "/v1/quotes", session.analyst, json=body)
    reply = session.ok("POST", "/v1/queries", session.analyst, json=body)
    assert reply["steps"] == quoted["steps"]
    spent = sum(Decimal(step["epsilon"]) * step["times"] for step in reply["steps"])
    assert spent == Decimal(reply["charge"]["epsilon"]) == Decimal(epsilon)
    return reply["answer"]
