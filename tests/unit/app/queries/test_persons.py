"""Tables of persons over HTTP: whose rows they are is read, bounded, and never answered."""

from __future__ import annotations

from typing import Any

import pytest

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
#: Five persons with one to five wards' visits each; the last has forty more rows.
ROWS = [(f"p{i}", "abc"[(i + j) % 3], j) for i in range(5) for j in range(i + 1)]
ROWS += [("p4", "a", j) for j in range(40)]
KEPT = 1 + 4 * 2


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
        assert "visits version 1 (at most 2 rows of each person kept)" in answer["question"]


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
