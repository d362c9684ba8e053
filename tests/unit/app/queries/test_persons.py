"""Tables of persons over HTTP: whose rows they are is read, bounded, and never answered."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pydantic import TypeAdapter

from accounting.rho import pure_rho
from app.contract.datasets import Facts
from app.contract.descriptions import Registration, described, relation
from app.queries.table import KIND
from mechanisms.model.domains import Dataset
from tests.support.service import Service

VISITS: dict[str, Any] = {
    "name": "visits",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 20,
    "person": "id",
    "records_per_person": 2,
    "attributes": [
        {"name": "ward", "kind": "categorical", "values": ["a", "b", "c"]},
        {"name": "days", "kind": "numeric", "bounds": [0, 100], "bins": [0, 50, 100]},
    ],
    "class_attribute": "ward",
    "cap": {"epsilon": "1000000000"},
}
#: The visits of five persons, who have one to five visits each. The last person has forty more.
ROWS = [(f"p{i}", "abc"[(i + j) % 3], j) for i in range(5) for j in range(i + 1)]
ROWS += [("p4", "a", j) for j in range(40)]
KEPT = 1 + 4 * 2
registrations: TypeAdapter[Any] = TypeAdapter(Registration)


def csv_of(rows: list[tuple[str, str, int]]) -> bytes:
    return ("days,id,ward\n" + "".join(f"{d},{i},{w}\n" for i, w, d in rows)).encode()


@pytest.fixture
def visits(people: Service) -> Service:
    assert people("olga", "POST", "/v1/datasets", json=VISITS).status_code == 201
    reply = people.upload("olga", "visits", csv_of(ROWS))
    assert reply.status_code == 201, reply.text
    people.grant("olga", "visits", "ana", "100000000")
    return people


def ask(visits: Service, query: dict[str, Any], path: str = "queries", epsilon: int = 10**6) -> Any:
    body = {"dataset": "visits", "epsilon": epsilon, "query": query}
    return visits("ana", "POST", f"/v1/{path}", json=body)


def test_kept_rows_are_counted_and_every_question_says_so(visits: Service) -> None:
    count = ask(visits, {"kind": "statistic", "statistic": "count"}).json()["answer"]
    assert count["value"] == KEPT
    by_ward = ask(visits, {"kind": "table", "by": ["ward"]}).json()["answer"]
    assert sum(by_ward["cells"]["count"]["value"]) == KEPT
    tree = ask(visits, {"kind": "tree", "algorithm": "id3", "class_attribute": "ward"})
    for answer in (count, by_ward, tree.json()["answer"]):
        assert "visits version 1 (which keeps at most 2 rows of each person)" in answer["question"]


def test_persons_are_counted_once_per_cell_and_their_totals_are_no_sums(visits: Service) -> None:
    table: dict[str, Any] = {
        "kind": "table",
        "by": ["ward"],
        "aggregates": [{"name": "persons"}, {"name": "count"}],
    }
    sums = ask(visits, table).json()["answer"]
    assert sums["question"].startswith("What are the number of persons and the number of records")
    (total,) = sums["totals"]
    assert total["cells"].keys() == {"count"}
    measured = {**table, "totals": {"measured": [[]], "share": "0.5"}}
    answer = ask(visits, measured).json()["answer"]
    (total,) = answer["totals"]
    assert (total["measured"], total["cells"]["persons"]["value"]) == (True, [5])
    assert 5 < sum(answer["cells"]["persons"]["value"]) <= KEPT
    assert "raw" in total["cells"]["count"]
    assert "raw" not in total["cells"]["persons"]
    noise = ask(visits, measured, epsilon=1).json()["answer"]["noise"]
    scales = {(one["what"], one["by"] is None): one["scale"] for one in noise}
    # The counts of rows and of persons, by ward and in total, get ε/4 each. A person changes at
    # most two wards (a scale of 2/(1/4) = 8) and one total (a scale of 4).
    assert scales["persons", True] == pytest.approx(8, rel=1e-6)
    assert scales["persons", False] == pytest.approx(4, rel=1e-6)


def test_the_price_of_persons_is_the_charge(visits: Service) -> None:
    table = {"kind": "table", "by": ["ward"], "aggregates": [{"name": "persons"}]}
    quote = ask(visits, table, "quotes", 1).json()
    assert sum(Decimal(step["epsilon"]) for step in quote["steps"]) == 1
    # A person changes at most two cells, whose noise has the rate ε/2. The step that holds the rest
    # of the charge releases nothing and costs no ρ.
    (rho,) = (Decimal(step["rho"]) for step in quote["steps"] if Decimal(step["rho"]))
    assert float(rho) == pytest.approx(2 * float(pure_rho(Fraction(1, 2))), rel=1e-6)
    assert "kept rows, at most 2 a person" in quote["accuracy"]["explanation"]
    alone = ask(visits, {**table, "by": []}, "quotes", 1).json()
    assert alone["accuracy"]["parts"][0]["error"] < quote["accuracy"]["parts"][0]["error"]


def test_another_version_keeps_the_same_rows(visits: Service) -> None:
    table = {"kind": "table", "by": ["ward", "days"]}
    first = ask(visits, table).json()["answer"]["cells"]
    assert visits.upload("olga", "visits", csv_of(ROWS[::-1])).status_code == 201
    again = ask(visits, table).json()
    assert again["dataset_version"] == 2
    assert again["answer"]["cells"] == first


def test_the_column_of_persons_is_no_attribute(visits: Service) -> None:
    description = visits("ana", "GET", "/v1/datasets/visits").json()
    assert (description["person"], description["records_per_person"]) == ("id", 2)
    assert [one["name"] for one in description["attributes"]] == ["ward", "days"]
    for query in (
        {"kind": "table", "by": ["id"]},
        {"kind": "table", "where": {"attribute": "id", "in": ["p1"]}},
        {
            "kind": "top_k",
            "k": 1,
            "candidates": {"values_of": "id"},
            "utilities": [{"name": "count"}],
        },
    ):
        for path in ("queries", "quotes"):
            reply = ask(visits, query, path)
            assert (reply.status_code, reply.json()["type"]) == (422, "/problems/unsupported-query")


def test_no_number_of_dropped_rows_is_told(visits: Service) -> None:
    """Uploads that keep the same rows get the same replies, but for their version and times."""
    replies = []
    for rows in (ROWS, ROWS + [("p4", "a", 0)] * 1000):
        sent = visits.upload("olga", "visits", csv_of(rows)).json()
        description = visits("olga", "GET", "/v1/datasets/visits").json()
        versions = description.pop("versions")
        assert set(versions[0]) <= {"version", "status", "published", "removed"}
        sent.pop("version"), description.pop("version")
        replies.append((sent, description))
    assert replies[0] == replies[1]


def test_the_form_offers_persons_where_there_are_some() -> None:
    for body, has_persons in ((VISITS, True), ({**VISITS, "person": None}, False)):
        registration = registrations.validate_json(json.dumps(body))
        public = Dataset("visits", relation(registration), registration.domain())
        facts = Facts.of("visits", described(registration), public)
        fields = {field.name: field for field in KIND.form.fields(facts, "")}
        offered = [option.value for option in fields["aggregates"].options]
        assert ("persons" in offered) == has_persons
