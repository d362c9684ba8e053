"""Made-up records: what an upload accepts, made of public facts alone."""

from __future__ import annotations

import io
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from tests.support.service import EDGES, GRAPH, Service
from tests.unit.app.routes.test_datasets import problem

TABLE: dict[str, Any] = {
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 1000,
    "attributes": [
        {"name": "job", "kind": "categorical", "values": ["a, b", 'say "c"'], "missing": ""},
        {"name": "age", "kind": "numeric", "bounds": [0, 120], "bins": 10, "missing": "?"},
        {"name": "share", "kind": "numeric", "bounds": [-0.001, 0.001], "bins": 4},
        {"name": "one", "kind": "numeric", "bounds": [2, 3], "bins": [2, 3]},
    ],
    "cap": {"epsilon": "20"},
}
PERSONS: dict[str, Any] = {**TABLE, "person": "id", "records_per_person": 2}
PREFIX: dict[str, Any] = {
    "kind": "prefix",
    "neighbouring": "prefix",
    "public_values": [1, 2, 4],
    "cap": {"epsilon": "20"},
}
NAMED: dict[str, Any] = {**GRAPH, "nodes": {"ids": ["é", "x,y", "z"]}, "max_degree": 1}
MEDIA_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def register(people: Service, name: str, description: dict[str, Any]) -> str:
    body = {"max_degree": None, **description, "name": name}
    reply = people("olga", "POST", "/v1/datasets", json={k: v for k, v in body.items() if v})
    assert reply.status_code == 201, reply.text
    return f"/v1/datasets/{name}"


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("description", "rows"),
    [(TABLE, 500), (PERSONS, 500), (GRAPH, 3), (NAMED, 50), (PREFIX, 9)],
    ids=["table", "persons", "graph", "named", "prefix"],
)
@pytest.mark.long
def test_an_upload_accepts_what_was_made_up(
    people: Service, description: dict[str, Any], rows: int, form: str
) -> None:
    path = register(people, "made-up", description)
    reply = people("olga", "GET", f"{path}/mock?rows={rows}&format={form}")
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith(MEDIA_TYPES[form])
    assert people("olga", "GET", f"{path}/mock?rows={rows}&format={form}").content == reply.content
    table = pq.read_table if form == "parquet" else pa_csv.read_csv
    number = table(io.BytesIO(reply.content)).num_rows
    assert number == rows if description in (TABLE, PERSONS, GRAPH) else number == 1
    headers = {"Content-Type": MEDIA_TYPES[form]}
    sent = people("olga", "PUT", f"{path}/records", content=reply.content, headers=headers)
    assert sent.status_code == 201, sent.text


def test_every_level_and_missing_cells_occur(people: Service) -> None:
    path = register(people, "made-up", TABLE)
    content = people("olga", "GET", f"{path}/mock?rows=1000&format=parquet").content
    columns = pq.read_table(io.BytesIO(content)).to_pydict()
    assert set(columns["job"]) == {"a, b", 'say "c"', ""}
    assert 20 < columns["age"].count(None) < 100
    ages = [age for age in columns["age"] if age is not None]
    assert all(isinstance(age, int) and 0 <= age <= 120 for age in ages)
    assert len(set(ages)) > 100
    assert min(columns["share"]) >= -0.001
    assert len(set(columns["share"])) > 100


def test_records_have_no_part_in_it(people: Service) -> None:
    name = people.dataset("olga", records=None)
    before = people("olga", "GET", f"/v1/datasets/{name}/mock").content
    assert people.upload("olga", name, EDGES).status_code == 201
    assert people("olga", "GET", f"/v1/datasets/{name}/mock").content == before


def test_who_gets_it_and_how_much(people: Service) -> None:
    people.user("both", "admin", "analyst")
    path = f"/v1/datasets/{people.dataset('olga')}/mock"
    assert people("ada", "GET", path).status_code == 403
    for user in ("ana", "both"):
        assert problem(people(user, "GET", path)) == (404, "not-found")
    people.grant("olga", "triangle", "ana")
    assert people("ana", "GET", path).status_code == 200
    for query in ("rows=0", "rows=100001", "rows=x", "format=xlsx"):
        assert problem(people("ana", "GET", f"{path}?{query}")) == (422, "invalid-request")
    wide = [{"name": f"n{i}", "kind": "numeric", "bounds": [0, 1], "bins": 2} for i in range(20)]
    wide_path = register(people, "wide", TABLE | {"attributes": wide})
    assert people("olga", "GET", f"{wide_path}/mock?rows=50000").status_code == 200
    refused = people("olga", "GET", f"{wide_path}/mock?rows=50001")
    assert refused.json()["errors"][0]["msg"] == "at most 50000 rows"


def test_a_graph_without_its_nodes_has_none(people: Service) -> None:
    path = register(people, "unnamed", {**GRAPH, "nodes": None})
    assert problem(people("olga", "GET", f"{path}/mock")) == (409, "no-records")
