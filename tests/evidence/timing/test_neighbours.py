"""All that leaves the service is the same for a dataset X and its neighbour Y, but for answers.

Two services get the same requests, one about X and one about Y. Each computes its own answers; the
second then releases those of the first, because an answer is what was paid for. Every reply, page,
list, metric and journal entry must then be equal, but for random names and the time of day.
"""

from __future__ import annotations

import re
import shutil
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr
from sqlalchemy import text

from app.engine import verifying
from app.engine.requests import Priced
from app.main import create_app
from app.usecases import ledger
from storage.ledger.requests import Reservation
from storage.queries import history
from tests.support.patience import PATIENCE
from tests.support.service import Service, settings_on
from tests.support.walk import every_get

TOKEN = "let me see"
NODES = 12
#: The graph of dataset X is a perfect matching, which has the least local sensitivity. That of Y
#: has one more edge.
MATCHING = "source,target\n" + "".join(f"{v},{v + 1}\n" for v in range(0, NODES, 2))
#: The table of dataset X has equal records, so its class is pure. That of Y has one more record, of
#: another class.
PURE = "colour,size,class\n" + "red,3,yes\n" * 11
MIXED = PURE + "blue,9,no\n"
FILES = {
    "X": {"graph": MATCHING, "table": PURE, "gaussian": PURE, "open": PURE},
    "Y": {"graph": MATCHING + "0,2\n", "table": MIXED, "gaussian": MIXED, "open": MIXED},
}
TABLE: dict[str, Any] = {
    "name": "table",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 20,
    "class_attribute": "class",
    "cap": {"epsilon": "10", "delta": "0"},
    "attributes": [
        {"name": "colour", "kind": "categorical", "values": ["red", "blue"]},
        {"name": "size", "kind": "numeric", "bounds": [0, 10], "bins": 5},
        {"name": "class", "kind": "categorical", "values": ["yes", "no"]},
    ],
}
#: An allowance in ε and δ, and one that is charged in ρ and also permits Gaussian noise.
ALLOWANCE = {"epsilon": "9", "delta": "0.001"}
IN_RHO = {**ALLOWANCE, "composition_delta": "0.0001", "gaussian": True}
_COLOURS = {"name": "colour", "kind": "categorical", "values": "open", "missing": "none"}
TABLES: list[dict[str, Any]] = [
    TABLE,
    {**TABLE, "name": "gaussian", "cap": {**IN_RHO, "epsilon": "10"}},
    {
        **TABLE,
        "name": "open",
        "cap": {**ALLOWANCE, "epsilon": "10"},
        "attributes": [_COLOURS, *TABLE["attributes"][1:]],
    },
]
PAIR = [{"name": "degree"}, {"name": "egocentric_betweenness"}]
#: The queries whose run time followed the records most, and one query of every kind.
QUERIES: list[tuple[str, str, dict[str, Any]]] = [
    ("graph", "0.000001", {"kind": "selection", "utilities": PAIR, "objective": "pareto",
                           "sensitivity": "local"}),
    ("graph", "0.5", {"kind": "top_k", "k": 3, "utilities": PAIR[1:], "sensitivity": "local"}),
    ("graph", "0.5", {"kind": "top_k", "k": 2, "utilities": PAIR[:1], "selector": "laplace"}),
    ("graph", "0.5", {"kind": "top_k", "k": 2, "utilities": PAIR[1:], "selector": "subset"}),
    ("graph", "0.5", {"kind": "top_k", "k": 2, "utilities": PAIR[1:], "stages": {"shortlist": 4}}),
    ("graph", "0.5", {"kind": "statistic", "statistic": "triangles", "mechanism": "ladder"}),
    ("graph", "0.5", {"kind": "statistic", "statistic": "stars", "k": 3, "mechanism": "ladder"}),
    ("table", "0.5", {"kind": "statistic", "statistic": "median", "attribute": "size"}),
    ("table", "0.5", {"kind": "statistic", "statistic": "count"}),
    ("table", "0.5", {"kind": "tree", "max_depth": 2}),
    ("table", "0.5", {"kind": "tree", "algorithm": "forest", "trees": 2}),
    ("table", "0.5", {"kind": "tree", "algorithm": "naive_bayes"}),
    ("table", "0.5", {"kind": "tree", "algorithm": "evolutionary", "positive_class": "yes",
                      "population": 4, "selected": 2, "generations": 1}),
    ("table", "0.5", {"kind": "distance"}),
    ("table", "0.5", {"kind": "clustering", "clusters": 2, "iterations": 1}),
    ("table", "0.5", {"kind": "table", "by": ["colour"], "where": {"attribute": "size", "from": 4},
                      "aggregates": [{"name": "quantiles", "attribute": "size"}]}),
    ("gaussian", "0.001", {"kind": "table", "by": ["colour", "class"]}),
    ("gaussian", "0.001", {"kind": "tree", "max_depth": 2}),
    ("open", "0.5", {"kind": "table", "by": ["colour"], "delta": "0.0001"}),
    ("open", "0.5", {"kind": "top_k", "k": 2, "candidates": {"values_of": "colour"},
                     "utilities": [{"name": "count"}], "delta": "0.0001"}),
]  # fmt: skip
#: Matches a certificate: header, contents and signature.
CERTIFICATE = re.compile(r"eyJ[\w-]+\.([\w-]+)\.[\w-]+")
#: Patterns of what may differ between two runs: random ids, times, hashes and signatures, and the
#: chart of an account, which depends on the time of day. The amounts of the chart are also text and
#: are compared.
MASKS = {
    r'<svg class="chart"[^>]*aria-label="What is left of .*?</svg>': "CHART",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "ID",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?": "TIME",
    r"(?<![\w])[0-9a-f]{16,}(?![\w])|(?<![\w])[0-9a-f]{12}(?=…)": "HASH",
}
#: Matches metrics that are times: when a counter began, and how long replies took.
METRIC_TIMES = re.compile(
    r"^(\w+(?:_created|_seconds_sum|_seconds_bucket){.*}|\w+_age_seconds) .*$", re.MULTILINE
)

Outputs = dict[str, str]
Begun = tuple[Path, dict[str, str]]


def masked(output: str) -> str:
    output = CERTIFICATE.sub(lambda match: urlsafe_b64decode(f"{match[1]}==").decode(), output)
    for pattern, name in MASKS.items():
        output = re.sub(pattern, name, output)
    return output


@contextmanager
def service(begun: Begun, data: Path) -> Iterator[tuple[Service, FastAPI]]:
    shutil.copytree(begun[0], data)
    settings = settings_on(data).model_copy(update={"metrics_token": SecretStr(TOKEN)})
    application = create_app(settings)
    with TestClient(application, raise_server_exceptions=False) as client:
        people = Service(client, settings)
        people.keys = dict(begun[1])
        yield people, application


def all_outputs(people: Service, application: FastAPI, files: dict[str, str]) -> Outputs:
    """Everything that leaves, by its request."""
    outputs: Outputs = {}

    def note(where: str, reply: Any) -> None:
        # The length of a reply is not compared between X and Y: it follows from the text, and a
        # chart is longer at some times of day.
        headers = dict(reply.headers)
        if length := headers.pop("content-length", None):
            assert int(length) == len(reply.content)
        head = "\n".join(f"{name}: {value}" for name, value in headers.items())
        outputs[where] = masked(f"{reply.status_code}\n{head}\n\n{reply.text}")

    people.dataset("olga", None, name="graph", nodes={"count": NODES}, max_degree=6)
    for table in TABLES:
        note(f"register {table['name']}", people("olga", "POST", "/v1/datasets", json=table))
    for name, content in files.items():
        note(f"upload {name}", people.upload("olga", name, content.encode()))
        allowance = {"gaussian": IN_RHO, "open": ALLOWANCE}.get(name, {"epsilon": "9"})
        path = f"/v1/datasets/{name}/budgets/ana"
        note(f"grant {name}", people("olga", "PUT", path, json=allowance))
    for number, (name, amount, query) in enumerate(QUERIES):
        of = "rho" if name == "gaussian" else "epsilon"
        body = {"dataset": name, of: amount, "query": query}
        key = {"Idempotency-Key": f'"{number}"'}
        note(f"quote {number}", people("ana", "POST", "/v1/quotes", json=body))
        for time in ("first", "second"):
            reply = people("ana", "POST", "/v1/queries", json=body, headers=key)
            note(f"query {number} {time}", reply)
            assert reply.status_code == 201, reply.text
    ids = [query["id"] for query in people("ana", "GET", "/v1/queries").json()["items"]]
    values = {
        "name": [*files, "ana"],
        "dataset": [*files],
        "user": ["ana"],
        "query_id": ids[:1],
        "id": [people.keys["ana"].split("_")[1]],
        "page": ["datasets"],
        "slug": ["query-failed"],
        "path": ["nowhere"],
    }
    for where, reply in every_get(people, application, ["ana", "olga", "otto"], values):
        note(masked(where), reply)
    refused = people("ana", "POST", "/v1/queries", json=body | {"epsilon": "10"})
    note("beyond the budget", refused)
    metrics = people.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    outputs["metrics"] = re.sub(METRIC_TIMES, r"\1 TIME", metrics.text)
    lengths = ", ".join(str(len(content)) for content in files.values())
    people.dataset("olga", None, name="third", description=f"files of {lengths} bytes")
    note("planted", people("olga", "GET", "/v1/datasets/third"))
    return outputs


def journal(people: Service) -> Outputs:
    """The rows of the ledger and its journal: numbers and texts, and the lengths of all bytes."""
    with people.client.app.state.services.database.read() as connection:
        rows = {
            name: connection.execute(text(f"SELECT * FROM {name}")).mappings().all()
            for name in ("journal", "audit", "query", "entry", "settlement")
        }
    return {
        f"row {number} of {table}": str({name: column(name, row[name]) for name in row})
        for table in rows
        for number, row in enumerate(rows[table])
    }


def column(name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if name.endswith(("_us", "_until")):
        return "TIME"
    return masked(value) if isinstance(value, str) else value


def world(
    name: str, answers: list[Any], begun: Begun, folder: Path, patch: pytest.MonkeyPatch
) -> Outputs:
    """All outputs of a service on X or Y, which answers as ``answers`` say or else fills them."""
    replies, missing = iter(answers), not answers
    reply = Priced.reply

    def answered(priced: Priced, reservation: Reservation, answer: Any) -> bytes:
        if missing:
            answers.append(answer)
        return reply(priced, reservation, answer if missing else next(replies))

    with patch.context() as one, service(begun, folder / name) as (people, application):
        one.setattr(Priced, "reply", answered)
        # Owners and auditors see the state of the last full minute, and a minute may end during one
        # run alone. So the test shortens this minute to a microsecond.
        one.setattr(history, "MINUTE_US", 1)
        # Every verification reads the whole ledger and is waited for. Otherwise its duration could
        # make the two runs differ.
        one.setattr(verifying, "QUICK", float("inf"))
        one.setattr(verifying, "SHARE", 0)
        one.setattr(ledger.verify, "__defaults__", (PATIENCE,))
        outputs = all_outputs(people, application, FILES[name])
        return outputs | journal(people)


def differences(x: Outputs, y: Outputs) -> dict[str, list[tuple[str, str]]]:
    """Where two worlds differ, with the first lines that do."""
    apart: dict[str, list[tuple[str, str]]] = {where: [] for where in x.keys() ^ y.keys()}
    for where in x.keys() & y.keys():
        if x[where] != y[where]:
            lines = zip(x[where].splitlines(), y[where].splitlines(), strict=False)
            apart[where] = [pair for pair in lines if pair[0] != pair[1]][:3]
    return apart


def test_nothing_but_answers_tells_neighbours_apart(
    begun: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = []
    x, y = (world(name, answers, begun, tmp_path, monkeypatch) for name in ("X", "Y"))
    assert len(answers) == len(QUERIES)
    # Outputs of X and Y differ only where the test planted a difference.
    assert differences(x, y).keys() == {"planted"}, differences(x, y)
    assert len(x) > 200
