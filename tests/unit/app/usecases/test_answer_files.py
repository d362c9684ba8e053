"""Answers as files are equal in every form, and belong to their analyst alone."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow.csv
import pytest
from pyarrow import feather, parquet

from app.queries import QUERY, QUERY_KINDS
from app.queries.parts.columns import explained
from app.queries.parts.examples import reply
from app.usecases.answer_files import FORMS, columns_of
from tests.support.service import Service

STATISTIC: dict[str, Any] = {
    "question": "What is the mean of age over the records of adult version 1?",
    "value": 38.25,
    "low": 37.9,
    "high": 38.6,
    "confidence": 0.95,
    "parts": {
        "sum": {"value": -700.5, "low": -720, "high": -681, "around": 60},
        "count": {"value": 32, "low": 29, "high": 35},
    },
}
#: Answers for each kind of query, in addition to the examples of the kind.
MORE: list[tuple[str, dict[str, Any]]] = [
    ("statistic", STATISTIC),
    ("statistic", {"value": 17.5, "explanation": "The noise depends on the records."}),
    ("selection", {"selected": 'Exec, "managerial"\nor so'}),
    ("top_k", {"selected": [3, 1], "ordered": True}),
    (
        "top_k",
        {
            "selected": ["a", "b"],
            "ordered": True,
            "confidence": 0.95,
            "values": {"value": [7.5, 3], "low": [4.5, 0], "high": [10.5, 6]},
        },
    ),
    ("tree", {"trees": [{"label": "yes"}, {"label": "no", "counts": {"yes": 1, "no": 5}}]}),
]


def replies() -> list[dict[str, Any]]:
    """A stored reply of each kind by its example, and one of each answer of ``MORE``."""
    stored = []
    for name, kind in QUERY_KINDS.items():
        answers = [kind.examples.answer, *(answer for other, answer in MORE if other == name)]
        query = QUERY.validate_json(json.dumps(kind.examples.request["query"]))
        stored += [reply(query, kind.examples.request, answer) for answer in answers]
    return stored


REPLIES = replies()
each_reply = pytest.mark.parametrize(
    "stored", REPLIES, ids=lambda one: f"{one['query']['kind']}-{len(json.dumps(one['answer']))}"
)


def written(stored: dict[str, Any]) -> dict[str, bytes]:
    return {name: form.write(stored) for name, form in FORMS.items()}


@each_reply
def test_the_forms_are_equal_in_arrow(stored: dict[str, Any]) -> None:
    files, columns = written(stored), columns_of(stored)
    assert json.loads(files["json"]) == stored["answer"]
    table = feather.read_table(io.BytesIO(files["arrow"]))
    assert table.to_pydict() == {name: list(values) for name, values in columns.items()}
    assert parquet.read_table(io.BytesIO(files["parquet"])).equals(table)
    options = pyarrow.csv.ConvertOptions(
        column_types=table.schema, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    read = pyarrow.csv.read_csv(io.BytesIO(files["csv"]), None, parsing, options)
    assert read.to_pydict() == table.to_pydict()


@each_reply
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_forms_are_equal_in_data_frames(library: str, stored: dict[str, Any]) -> None:
    frames = pytest.importorskip(library, reason=f"{library} is not installed")
    files = {name: io.BytesIO(content) for name, content in written(stored).items()}
    read_arrow = frames.read_feather if library == "pandas" else frames.read_ipc
    whole = read_arrow(files["arrow"])
    other = frames.read_parquet(files["parquet"])
    text = frames.read_csv(files["csv"])
    for frame in (other, text):
        assert list(frame.columns) == list(whole.columns)
        assert len(frame) == len(whole)
    assert other.equals(whole)
    for name in whole.columns:
        for one, two in zip(whole[name], text[name], strict=True):
            absent = [value is None or value != value for value in (one, two)]
            assert absent[0] == absent[1]
            assert absent[0] or one == two or str(one) == str(two), name


@each_reply
def test_a_file_shows_question_price_and_interval_in_words(stored: dict[str, Any]) -> None:
    columns = columns_of(stored)
    rows = len(next(iter(columns.values())))
    assert all(len(values) == rows for values in columns.values())
    assert set(columns["question"]) == {stored["answer"]["question"]}
    charge = stored["charge"]
    assert set(columns["charge"]) == {f"ε = {charge['epsilon']}, ρ = {charge['rho']}"}
    assert ("interval" in columns) == ("low" in columns and "confidence" in stored["answer"])


def test_an_interval_in_words() -> None:
    (stored,) = [one for one in REPLIES if one["answer"].get("parts")]
    columns = columns_of(stored)
    assert columns["number"] == ["value", "sum", "count"]
    assert columns["interval"][0] == "37.9 to 38.6 with a probability of at least 0.95"
    assert columns["around"] == [None, 60, None]


def test_counts_beside_floats_stay_whole_numbers() -> None:
    (stored,) = [one for one in REPLIES if one["answer"].get("parts")]
    count = stored["answer"]["parts"]["count"]["value"]
    assert isinstance(count, int)
    rows = csv.DictReader(io.StringIO(FORMS["csv"].write(stored).decode()))
    assert [row["value"] for row in rows if row["number"] == "count"] == [str(count)]


def test_paths_lead_to_the_leaves_of_trees() -> None:
    tree = {"attribute": "sex", "branches": {"f": {"label": "yes"}, "m": {
        "attribute": "age", "threshold": 50.0, "below": {"label": "no"}, "above": {"label": "yes"},
    }}}  # fmt: skip
    columns = QUERY_KINDS["tree"].columns({"trees": [tree]})
    assert columns == {
        "tree": [1, 1, 1],
        "path": ["sex = f", "sex = m and age < 50", "sex = m and age ≥ 50"],
        "label": ["yes", "no", "yes"],
    }


@pytest.fixture
def shop(people: Service) -> Service:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "1")
    return people


def test_an_analyst_downloads_own_answers_free(shop: Service) -> None:
    query = {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}]}
    body = {"dataset": "triangle", "epsilon": "0.25", "query": query}
    answered = shop("ana", "POST", "/v1/queries", json=body).json()
    path = f"/v1/queries/{answered['id']}/answer"
    assert shop("ana", "GET", path).json() == answered["answer"]
    spent = shop("ana", "GET", "/v1/budgets").json()
    for name, form in FORMS.items():
        file = shop("ana", "GET", f"{path}?format={name}")
        assert file.headers["content-type"] == form.media_type
        assert file.content == form.write(answered)
        assert (f'{answered["id"]}.{name}"' in file.headers.get("content-disposition", "")) == (
            name != "json"
        )
    assert shop("ana", "GET", "/v1/budgets").json() == spent
    shop.user("eve", "analyst")
    for who, status in (("olga", 403), ("otto", 403), ("eve", 404)):
        assert shop(who, "GET", path).status_code == status
    assert shop("ana", "GET", f"{path}?format=xlsx").status_code == 422
    assert shop("ana", "GET", "/v1/queries/absent/answer").status_code == 404


def test_an_owner_who_is_an_analyst_too_downloads_no_answer_of_others(people: Service) -> None:
    people.user("both", "owner", "analyst")
    people.dataset("both", name="own")
    people.grant("both", "own", "ana", "1")
    query = {"kind": "selection", "utilities": [{"name": "degree"}]}
    body = {"dataset": "own", "epsilon": "0.25", "query": query}
    answered = people("ana", "POST", "/v1/queries", json=body).json()
    path = f"/v1/queries/{answered['id']}"
    assert "answer" not in people("both", "GET", path).json()
    assert people("both", "GET", f"{path}/answer").status_code == 404


def test_attributes_of_a_table_never_hide_numbers_and_explanations() -> None:
    """Names of attributes are free, and columns of one name would overwrite another."""
    numbers = {"value": [1, 2], "low": [0, 1], "high": [2, 3]}
    names = ["count.value", "question", "charge", "by.charge", "low", "high", "suppressed"]
    answer = {
        "question": "How many?",
        "confidence": 0.95,
        "by": {name: [name] for name in names} | {"town": ["a", "b"]},
        "cells": {"count": numbers},
        "suppressed": [False, True],
    }
    columns = QUERY_KINDS["table"].columns(answer)
    assert columns["count.value"] == [1, 2]
    assert columns["by.count.value"] == ["count.value"] * 2
    assert columns["town"] == ["a", "b"]
    written = explained(columns, {"answer": answer, "charge": {"epsilon": "1"}})
    assert written["question"] == ["How many?"] * 2
    assert written["charge"] == ["ε = 1"] * 2
    assert written["suppressed"] == [False, True]
    assert "interval" not in written
    groups = {values[0] for values in columns.values() if values[0] in names}
    assert groups == {*names}
