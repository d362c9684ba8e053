"""Listings, stored answers and tables of other libraries, through both clients."""

from __future__ import annotations

import asyncio
import csv
import inspect
import io
import json
from typing import Any

import httpx
import networkx
import pyarrow
import pytest
from pyarrow import parquet

from privypurse import (
    AsyncPrivyPurse,
    BelowSpent,
    BudgetExhausted,
    Charge,
    NoAnswer,
    PrivyPurse,
    TopK,
    Trees,
    Unanswered,
    top_k,
)
from privypurse.frames import library
from tests.unit.client.conftest import ANSWERED, Play, Script, problem

AMOUNT = {"epsilon": "0.5", "delta": "0"}
ACCOUNT = {
    "dataset": "star",
    "analyst": "ana",
    **dict.fromkeys(("allowance", "spent", "remaining"), AMOUNT),
}
QUERY: dict[str, Any] = {
    "id": "q1",
    "status": "answered",
    "analyst": "ana",
    "dataset": "star",
    "dataset_version": 3,
    "question": "Which 2 nodes of star version 3 have the highest degree?",
    "query": {"kind": "top_k", "k": 2},
    "charge": AMOUNT | {"neighbouring": "edge"},
    "created": "2026-01-02T03:04:05Z",
    "released": None,
}
FLAT = {
    "dataset": "star",
    "analyst": "ana",
    "etag": None,
    "allowance_epsilon": 0.5,
    "allowance_delta": 0.0,
    "spent_epsilon": 0.5,
    "spent_delta": 0.0,
    "remaining_epsilon": 0.5,
    "remaining_delta": 0.0,
    **dict.fromkeys(("allowance_rho", "spent_rho", "remaining_rho")),
    "largest_epsilon": 0.5,
    "until": None,
}


def page(*items: Any, cursor: str | None = None) -> Any:
    return 200, {"items": list(items), "next": cursor}, {}


def test_queries_are_listed_page_by_page_with_their_questions(play: Play) -> None:
    purse, script = play(page(QUERY, cursor="c"), page({**QUERY, "id": "q0"}))
    queries = list(purse.queries("star"))
    assert [query.id for query in queries] == ["q1", "q0"]
    assert queries[0].question == QUERY["question"]
    assert queries[0].released is None
    assert [str(one.url.params) for one in script.requests] == [
        "dataset=star&limit=1000",
        "dataset=star&limit=1000&cursor=c",
    ]


def test_listings_are_rows_without_nested_values(play: Play) -> None:
    purse, _ = play(page(ACCOUNT), page({"name": "ana", "roles": ["analyst", "owner"]}))
    assert purse.budgets().rows() == [FLAT]
    assert purse.users().rows() == [{"name": "ana", "roles": "analyst, owner", "disabled": False}]
    assert purse_of(page(QUERY)).queries().rows()[0] == {
        **{name: QUERY[name] for name in ("id", "status", "analyst", "dataset", "question")},
        "dataset_version": 3,
        "charge_epsilon": 0.5,
        "charge_delta": 0.0,
        "charge_rho": None,
        "created": purse_of(page(QUERY)).queries().rows()[0]["created"],
        "released": None,
    }


def test_an_account_that_counts_in_rho_says_what_is_left(play: Play) -> None:
    rest = {"epsilon": "0", "delta": "0", "rho": "0.0014"}
    fits = {"selection": 7, "top_k": 2}
    account = ACCOUNT | {"remaining": rest, "largest_epsilon": "0.052", "fits_more": fits}
    purse, _ = play(page(account))
    (one,) = purse.budgets()
    assert (str(one.largest_epsilon), str(one.remaining.rho)) == ("0.052", "0.0014")
    assert str(one.remaining) == "ε = 0, ρ = 0.0014"
    assert one.fits_more == fits
    assert str(one.allowance) == "ε = 0.5"
    (row,) = purse_of(page(account)).budgets().rows()
    assert (row["remaining_rho"], row["allowance_rho"]) == (0.0014, None)


def test_gaussian_noise_has_no_finite_epsilon_in_rows(play: Play) -> None:
    query = QUERY | {"charge": {"epsilon": None, "delta": "0", "rho": "0.05"}}
    purse, _ = play(page(query))
    (one,) = purse.queries()
    assert str(one.charge) == "ρ = 0.05"
    (row,) = purse_of(page(query)).queries().rows()
    assert (row["charge_epsilon"], row["charge_rho"]) == (None, 0.05)
    # Every charge has a ρ, but its text names ρ only if the charge has no finite ε.
    assert str(Charge.of({"epsilon": "0.5", "delta": "0", "rho": "0.1"})) == "ε = 0.5"


def test_a_large_delta_is_allowed_by_name(play: Play) -> None:
    purse, script = play((200, ACCOUNT, {}), (200, ACCOUNT, {}))
    purse.grant("star", "ana", epsilon=1, composition_delta="0.001", allow_large_delta=True)
    purse.promise_cap("star", 0)
    grant, cap = (json.loads(one.content) for one in script.requests)
    assert (grant["composition_delta"], grant["allow_large_delta"]) == ("0.001", True)
    assert cap == {"composition_delta": "0"}


def test_refusals_and_quotes_say_what_still_fits(play: Play) -> None:
    rest = {"epsilon": "0", "delta": "0", "rho": "0.0014"}
    largest = {"epsilon": "0.052", "delta": "0"}
    exhausted = problem(403, "budget-exhausted", remaining=rest, largest_affordable=largest)
    lost = problem(409, "below-spent", spent=rest, composition_delta="0.000001")
    quote = {"charge": AMOUNT, "steps": [], "accuracy": {}, "affordable": True, "fits_more": 7}
    no_noise = quote | {"affordable": False, "fits_more": 0, "reason": "the cap says no"}
    purse, _ = play(exhausted, lost, (200, quote, {}), (200, no_noise, {}))
    with pytest.raises(BudgetExhausted, match=r"remaining: ε = 0, ρ = 0\.0014, largest .* 0\.052"):
        purse.ask("star", top_k(2, "degree"), epsilon=1)
    with pytest.raises(BelowSpent, match=r"spent: ε = 0, ρ = 0\.0014") as refused:
        purse.grant("star", "ana", epsilon=1)
    assert str(refused.value.composition_delta) == "0.000001"
    quoted = purse.quote("star", top_k(2, "degree"), epsilon="0.5")
    assert quoted.fits_more == 7
    assert "7 such queries fit" in quoted._repr_html_()
    assert quoted.reason is None
    quoted = purse.quote("star", top_k(2, "degree"), rho="0.5")
    assert "not affordable: the cap says no" in quoted._repr_html_()


def purse_of(*turns: Any) -> PrivyPurse:
    script = httpx.MockTransport(Script(list(turns), None))
    return PrivyPurse("http://service", "pp_x", transport=script)


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_listings_and_answers_are_data_frames(name: str) -> None:
    pytest.importorskip(name, reason=f"{name} is not installed")
    numbers = {"value": [7, 5], "low": [4, 2], "high": [10, 8]}
    answer = {"selected": ["a", "b"], "values": numbers, "confidence": 0.95}
    top = TopK.read(ANSWERED | {"answer": answer}, {})
    frames = [
        getattr(framed, f"to_{'arrow' if name == 'pyarrow' else name}")()
        for framed in (purse_of(page(ACCOUNT)).budgets(), purse_of(page(QUERY)).queries(), top)
    ]
    names = [list(getattr(frame, "column_names", frame.columns)) for frame in frames]
    assert sorted(names[0]) == sorted(FLAT)
    assert names[2] == ["selected", "value", "low", "high"]
    assert [len(frame) for frame in frames] == [1, 1, 2]


def test_a_library_that_is_missing_is_named() -> None:
    with pytest.raises(ImportError, match="pip install no_such_library"):
        library("no_such_library")


def test_a_stored_answer_is_that_of_its_call(play: Play) -> None:
    stored = ANSWERED | {"query": {"kind": "top_k"}}
    running = {**QUERY, "status": "running", "elapsed": 0.1, "expected": 1.0}
    purse, script = play((200, running, {}), (200, stored, {}))
    answer = purse.answer("q1")
    assert isinstance(answer, TopK)
    assert answer.selected == [4, 2]
    assert script.lines == ["GET /v1/queries/q1"] * 2


def test_a_stored_tree_reads_the_description(play: Play) -> None:
    stored = ANSWERED | {"query": {"kind": "tree"}, "answer": {"trees": [{"label": "yes"}]}}
    described = {"name": "star", "attributes": [{"name": "a", "kind": "categorical", "values": []}]}
    purse, script = play((200, stored, {}), (200, described, {}))
    answer = purse.answer("q1")
    assert isinstance(answer, Trees)
    assert list(answer.tree.columns) == ["a"]
    assert script.lines[1] == "GET /v1/datasets/star"


def test_queries_without_an_answer_say_so(play: Play) -> None:
    purse, _ = play((200, {**QUERY, "status": "failed"}, {}))
    with pytest.raises(NoAnswer, match="failed"):
        purse.answer("q1")
    purse, _ = play(after=(200, {**QUERY, "status": "running"}, {}))
    with pytest.raises(Unanswered):
        purse.answer("q1", timeout=3)


READY = (200, {"name": "g", "status": "ready"}, {})
ROWS = [{"town": "a", "age": 7.5}, {"town": None, "age": 8.0}]


def sent(play: Play, records: Any) -> httpx.Request:
    purse, script = play((201, {}, {}), READY)
    purse.upload("g", records)
    return script.requests[0]


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_tables_of_other_libraries_are_sent_as_parquet(play: Play, name: str) -> None:
    module = pytest.importorskip(name, reason=f"{name} is not installed")
    if name == "pyarrow":
        records = pyarrow.Table.from_pylist(ROWS)
    else:
        records = module.DataFrame(ROWS)
    request = sent(play, records)
    assert request.headers["Content-Type"] == "application/vnd.apache.parquet"
    table = parquet.read_table(io.BytesIO(request.content))
    assert table.to_pylist() == ROWS


@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph"])
def test_graphs_are_sent_with_each_edge_once(play: Play, kind: str) -> None:
    graph = getattr(networkx, kind)([("a,b", "c"), ("c", "a,b"), (1, 2)])
    request = sent(play, graph)
    assert request.headers["Content-Type"] == "text/csv"
    header, *edges = csv.reader(io.StringIO(request.content.decode()))
    assert header == ["source", "target"]
    assert sorted(map(sorted, edges)) == [["1", "2"], ["a,b", "c"]]


def test_other_objects_are_refused_before_anything_is_sent(play: Play) -> None:
    purse, _ = play()
    with pytest.raises(TypeError, match="not list"):
        purse.upload("g", [1, 2])


def test_both_clients_have_the_same_calls_and_signatures() -> None:
    calls, own = (
        {name: call for name, call in inspect.getmembers(one) if not name.startswith("_")}
        for one in (PrivyPurse, AsyncPrivyPurse)
    )
    assert set(own) - {"in_thread"} == set(calls)
    for name, call in calls.items():
        assert inspect.iscoroutinefunction(own[name]) or inspect.isasyncgenfunction(own[name]), name
        if name != "close":
            assert inspect.signature(own[name]) == inspect.signature(call), name


def test_calls_of_an_event_loop_run_side_by_side() -> None:
    async def several() -> list[str]:
        turns = [(200, {"name": "ana", "roles": []}, {})] * 5
        transport = httpx.MockTransport(Script(turns, None))
        async with AsyncPrivyPurse("http://service", "pp_x", transport=transport) as purse:
            users = await asyncio.gather(*(purse.me() for _ in range(5)))
            with pytest.raises(AttributeError):
                _ = purse.no_such_call
            assert "pp_x" not in repr(purse)
        return [user.name for user in users]

    assert asyncio.run(several()) == ["ana"] * 5
