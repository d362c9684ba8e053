"""Decision trees over HTTP: every combination, exact charges, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import Any

import httpx
import pytest

from mechanisms.model.tree_shape import check_tree
from tests.support.randomness import SeededRandomness
from tests.support.service import Service
from tests.unit.app.queries.test_selection_kinds import TABLE

#: Table rows in which sex decides who is paid, except that nobody below 25 is.
ROWS = "sex,town,age,paid\n" + "".join(
    f"{'f' if i % 2 else 'm'},{'abc'[i % 3]},{i % 100},"
    f"{'yes' if i % 2 and i % 100 >= 25 else 'no'}\n"
    for i in range(900)
)
ID3 = {"kind": "tree", "algorithm": "id3"}
SEARCH = {
    "kind": "tree",
    "algorithm": "evolutionary",
    "positive_class": "yes",
    "population": 20,
    "selected": 5,
}


Start = Callable[[], AbstractContextManager[Service]]
#: A cap that is large enough for the queries of all tests.
ROOM = {"cap": {"epsilon": "100000000", "delta": "0"}}


@pytest.fixture(scope="module", params=["add_remove", "replace"])
def table(shared: Start, request: pytest.FixtureRequest) -> Iterator[Service]:
    with shared() as people:
        yield registered(people, request.param, **ROOM)


@pytest.fixture(scope="module")
def added(shared: Start) -> Iterator[Service]:
    with shared() as people:
        yield registered(people, "add_remove", **ROOM)


def registered(people: Service, relation: str, rows: str | None = None, **changes: Any) -> Service:
    body = {**TABLE, "neighbouring": relation, **changes}
    if relation == "replace":
        del body["max_rows"]
    reply = people("olga", "POST", "/v1/datasets", json=body)
    assert reply.status_code == 201, reply.text
    content = (ROWS if rows is None else rows).encode()
    assert people.upload("olga", body["name"], content).status_code == 201
    people.grant("olga", body["name"], "ana", body["cap"]["epsilon"])
    return people


def ask(service: Service, epsilon: Any = "1000", dataset: str = "people", **query: Any) -> Any:
    body = {"dataset": dataset, "epsilon": epsilon, "query": query}
    reply: httpx.Response = service("ana", "POST", "/v1/queries", json=body)
    return reply


def quote(service: Service, dataset: str = "people", **body: Any) -> Any:
    return service("ana", "POST", "/v1/quotes", json={"dataset": dataset, **body})


def spent(steps: list[dict[str, Any]]) -> Decimal:
    """Sequential steps add up, parallel ones count once."""
    return sum(
        (
            Decimal(step["epsilon"]) * (step["times"] if step["composition"] == "sequential" else 1)
            for step in steps
        ),
        Decimal(0),
    )


def trees_of(reply: httpx.Response) -> list[dict[str, Any]]:
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert spent(body["steps"]) == Decimal(body["charge"]["epsilon"])
    trees: list[dict[str, Any]] = body["answer"]["trees"]
    for tree in trees:
        check_tree(tree)
    return trees


def predict(tree: dict[str, Any], row: dict[str, Any]) -> str:
    """Predicts as the documentation does, for numbers in bins of 25."""
    while "label" not in tree:
        value = row[tree["attribute"]]
        if "branches" in tree:
            tree = tree["branches"][value]
        elif "value" in tree:
            tree = tree["equal"] if value == tree["value"] else tree["other"]
        else:
            tree = tree["above"] if row["years"] >= tree["threshold"] else tree["below"]
    return str(tree["label"])


def accuracy(tree: dict[str, Any]) -> float:
    bins = ["[0,25)", "[25,50)", "[50,75)", "[75,100]"]
    right = 0
    for line in ROWS.splitlines()[1:]:
        sex, town, age, paid = line.split(",")
        row = {"sex": sex, "town": town, "age": bins[int(age) // 25], "years": int(age)}
        right += predict(tree, row) == paid
    return right / 900


@pytest.mark.parametrize("selector", ["permute_and_flip", "exponential"])
@pytest.mark.parametrize("sensitivity", ["global", "local", "flattened", "shifted"])
@pytest.mark.parametrize("criterion", ["information_gain", "gini", "max"])
def test_id3_by_every_criterion_and_sensitivity(
    table: Service, criterion: str, sensitivity: str, selector: str
) -> None:
    reply = ask(
        table, **ID3, criterion=criterion, sensitivity=sensitivity, selector=selector, max_depth=3
    )
    (tree,) = trees_of(reply)
    assert accuracy(tree) == 1.0


@pytest.mark.parametrize("selector", ["permute_and_flip", "exponential"])
@pytest.mark.parametrize("sensitivity", ["global", "local"])
@pytest.mark.parametrize("objective", ["weighted_sum", "pareto", "front"])
def test_the_search_by_every_objective_and_sensitivity(
    table: Service,
    objective: str,
    sensitivity: str,
    selector: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The evolutionary search is random and may end far from the best tree. A fixed seed makes every
    # run end alike.
    attempts = table.client.app.state.services.answering._attempts  # type: ignore[attr-defined]
    monkeypatch.setattr(attempts, "_randomness", SeededRandomness(7))
    reply = ask(
        table,
        **SEARCH,
        objective=objective,
        sensitivity=sensitivity,
        selector=selector,
        outputs=3,
    )
    trees = trees_of(reply)
    assert len(trees) == 3
    assert {leaf for tree in trees for leaf in labels(tree)} <= {"yes", "no"}
    if objective == "weighted_sum":
        # The sum of the true positive and the true negative rate is 1 for random trees and 2 for
        # the rule that made the rows. The best of a hundred trees is far above 1.
        assert max(map(accuracy, trees)) > 0.6


def labels(tree: dict[str, Any]) -> set[str]:
    if "label" in tree:
        return {tree["label"]}
    ways = [tree[way] for way in ("equal", "other", "below", "above") if way in tree]
    return {label for way in ways for label in labels(way)}


@pytest.mark.parametrize("epsilon", ["0.01", "0.123456789", "7", "99999.999999999"])
@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, 64])
def test_id3_costs_exactly_what_was_asked(table: Service, max_depth: int, epsilon: str) -> None:
    body = quote(table, epsilon=epsilon, query={**ID3, "max_depth": max_depth}).json()
    assert body["charge"]["epsilon"] == epsilon
    assert spent(body["steps"]) == Decimal(epsilon)
    trees_of(ask(table, epsilon, **ID3, max_depth=max_depth))
    if epsilon == "0.123456789":
        for names in (["sex"], ["sex", "town"]):
            query = {**ID3, "max_depth": max_depth, "attributes": names}
            body = quote(table, epsilon=epsilon, query=query).json()
            assert spent(body["steps"]) == Decimal(epsilon)
            own = [step for step in body["steps"] if step["composition"] == "parallel"]
            assert len(own) == 2 * min(max_depth, len(names)) + 1


@pytest.mark.parametrize("epsilon", ["0.1", "0.123456789", "7"])
@pytest.mark.parametrize("generations, outputs", [(0, 1), (0, 7), (1, 1), (3, 3)])
def test_the_search_costs_exactly_what_was_asked(
    table: Service, generations: int, outputs: int, epsilon: str
) -> None:
    query = {**SEARCH, "generations": generations, "outputs": outputs}
    body = quote(table, epsilon=epsilon, query=query).json()
    assert spent(body["steps"]) == Decimal(epsilon)
    assert sum(step["times"] for step in body["steps"]) == 5 * generations + outputs
    assert len(trees_of(ask(table, epsilon, **query))) == outputs


HEADER = "sex,town,age,paid\n"
CORNERS = {
    "no rows": HEADER,
    "one row": HEADER + "f,a,30,yes\n",
    "equal rows": HEADER + "f,a,30,yes\n" * 500,
    "one class": HEADER + "".join(f"{'fm'[i % 2]},a,{i % 100},no\n" for i in range(500)),
    "every age is missing but in the class": HEADER + "f,?,0,yes\nm,?,100,no\n" * 250,
}


@pytest.mark.parametrize("rows", CORNERS.values(), ids=CORNERS)
def test_corners_have_right_answers_at_the_same_price(people: Service, rows: str) -> None:
    registered(people, "add_remove", rows)
    (tree,) = trees_of(ask(people, "50000", **ID3, attributes=["sex", "town"]))
    counts = [
        {label: number["value"] for label, number in leaf["counts"].items()}
        for leaf in leaves_of(tree)
    ]
    lines = [line.split(",") for line in rows.splitlines()[1:]]
    for label in ("yes", "no"):
        # The class counts of a leaf have ε = 10,000 at least. Noise other than 0 has a probability
        # of about e^−10000.
        assert sum(count[label] for count in counts) == sum(line[3] == label for line in lines)
    steps = [quote(people, epsilon="1", query=query).json()["steps"] for query in (ID3, SEARCH)]
    for query, priced in zip((ID3, SEARCH), steps, strict=True):
        reply = ask(people, "1", **query)
        trees_of(reply)
        assert reply.json()["steps"] == priced


def leaves_of(tree: dict[str, Any]) -> list[dict[str, Any]]:
    if "label" in tree:
        return [tree]
    return [leaf for way in tree["branches"].values() for leaf in leaves_of(way)]


def test_a_replace_dataset_runs_id3_at_half_and_says_why(people: Service) -> None:
    registered(people, "replace")
    body = quote(people, epsilon="1", query={**ID3, "max_depth": 1}).json()
    why = body["steps"][-1]
    assert why["epsilon"] == "0.5"
    assert why["composition"] == "sequential"
    assert "replacement" in why["what"]
    assert spent(body["steps"][:-1]) == Decimal("0.5")
    # The evolutionary search is equally private under both relations, so nothing is halved.
    body = quote(people, epsilon="1", query=SEARCH).json()
    assert not any("replacement" in step["what"] for step in body["steps"])


def test_people_with_several_records_are_protected_as_groups(people: Service) -> None:
    registered(people, "replace", records_per_person=3)
    for query in ({**ID3, "max_depth": 1}, SEARCH):
        body = quote(people, epsilon="1", query=query).json()
        assert spent(body["steps"]) == 1
        assert "group privacy" in body["steps"][-1]["what"]
        trees_of(ask(people, "1", **query))


def test_steps_show_siblings_in_parallel(added: Service) -> None:
    body = quote(added, epsilon="0.7", query={**ID3, "max_depth": 2}).json()
    # Each path from the root to a leaf has fourteen equal shares of ε = 0.7. A count gets 1 and a
    # split 4, at two depths each, and the class counts of the leaf get 4.
    assert [step["epsilon"] for step in body["steps"]] == ["0.05", "0.2", "0.05", "0.2", "0.2"]
    assert [step["composition"] for step in body["steps"]] == ["parallel"] * 5
    assert [step["times"] for step in body["steps"]] == [1, 1, 4, 4, 4 * 4 * 2]


def test_the_quote_tells_what_to_expect(added: Service) -> None:
    query = {**ID3, "max_depth": 2, "criterion": "information_gain"}
    accuracy = quote(added, epsilon="0.35", query=query).json()["accuracy"]
    # Class counts have discrete Laplace noise at ε = 0.1. It exceeds x with the probability 2·p^(x
    # + 1) / (1 + p) for p = e^−0.1, which is at most 0.05 from x = 30 on.
    assert accuracy["leaf_count_error"] == 30
    # A node with up to 4 branches and 2 classes is split from √2 · 4 · 2 / 0.1 = 113.1 records on.
    assert accuracy["least_count_to_split"] == 114
    chances = [entry["chance"] for entry in accuracy["best_split"]]
    leads = [entry["lead"] for entry in accuracy["best_split"]]
    assert chances == [0.5, 0.9, 0.99]
    assert leads == sorted(leads)
    assert accuracy["utility_below_best"] > accuracy["score_below_best"] > 0
    local = quote(added, epsilon="0.35", query={**query, "sensitivity": "local"}).json()
    assert "utility_below_best" not in local["accuracy"]
    search = quote(added, epsilon="4.1", query={**SEARCH, "sensitivity": "global"}).json()
    assert search["accuracy"]["candidates"] == 25
    assert search["accuracy"]["objective_below_best"] > 0


@pytest.mark.parametrize(
    "target, query",
    [
        ({"leaf_count_error": 10}, ID3),
        ({"score_below_best": 25}, {**ID3, "max_depth": 1}),
        ({"leaf_count_error": 100, "score_below_best": 5}, {**ID3, "selector": "exponential"}),
        ({"score_below_best": 20}, SEARCH),
        ({"score_below_best": 20}, {**SEARCH, "outputs": 3, "selector": "exponential"}),
    ],
)
def test_a_target_is_reached_by_the_quoted_loss_and_by_no_smaller(
    table: Service, target: dict[str, float], query: dict[str, Any]
) -> None:
    body = quote(table, target=target, query=query).json()
    assert all(body["accuracy"][name] <= limit for name, limit in target.items())
    less = str((Decimal(body["charge"]["epsilon"]) * Decimal("0.98")).quantize(Decimal("1e-9")))
    worse = quote(table, epsilon=less, query=query).json()["accuracy"]
    assert any(worse[name] > limit for name, limit in target.items())


@pytest.mark.parametrize(
    "query",
    [
        {**ID3, "max_depth": -1},
        {**ID3, "max_depth": 65},
        {**ID3, "max_depth": 2.5},
        {**ID3, "criterion": "entropy"},
        {**ID3, "sensitivity": "smooth"},
        {**ID3, "attributes": []},
        {**ID3, "population": 5},
        {**ID3, "prune": 1},
        {"kind": "tree", "algorithm": "cart"},
        {"kind": "tree", "algorithm": None},
        {**SEARCH, "prune": True},
        {**SEARCH, "sensitivity": "shifted"},
        {**SEARCH, "population": 0},
        {**SEARCH, "max_depth": 12},
        {**SEARCH, "objective": "single"},
        {**SEARCH, "objective": "pareto", "weights": {"true_positive_rate": 2}},
        {**SEARCH, "weights": {"true_positive_rate": "2"}},
        {"kind": "tree", "algorithm": "evolutionary"},
    ],
)
def test_a_malformed_body_is_invalid(added: Service, query: dict[str, Any]) -> None:
    for reply in (ask(added, **query), quote(added, epsilon="1", query=query)):
        assert reply.status_code == 422
        assert reply.json()["type"].endswith("invalid-request")


@pytest.mark.parametrize(
    "query",
    [
        {**ID3, "attributes": ["nobody"]},
        {**ID3, "attributes": ["sex", "sex"]},
        {**ID3, "attributes": ["paid"]},
        {**ID3, "class_attribute": "nobody"},
        {**SEARCH, "positive_class": "maybe"},
        {**SEARCH, "selected": 21},
        {**SEARCH, "outputs": 26},
        {**SEARCH, "initial_depth": 6},
        {**SEARCH, "population": 10_000, "generations": 100, "max_depth": 11},
        {**SEARCH, "weights": {"true_positive_rate": 0, "true_negative_rate": 0}},
    ],
)
def test_what_does_not_fit_the_dataset_is_free(added: Service, query: dict[str, Any]) -> None:
    before = added.spent()
    for reply in (ask(added, **query), quote(added, epsilon="1", query=query)):
        assert reply.status_code == 422
        assert reply.json()["type"].endswith("unsupported-query")
    assert added.spent() == before


def test_a_share_below_exact_arithmetic_is_refused(added: Service) -> None:
    # The ε of 1,000 · 10⁻⁹ is divided among 101 selections. Each gets 9 · 10⁻⁹ for twenty draws,
    # but a draw needs at least 10⁻⁹.
    reply = ask(added, "0.000001", **{**SEARCH, "generations": 100, "selected": 20})
    assert reply.status_code == 422
    assert reply.json()["type"].endswith("unsupported-query")


def test_a_graph_has_no_trees(people: Service) -> None:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "1")
    for query in ({**ID3, "class_attribute": "x"}, {**SEARCH, "class_attribute": "x"}, ID3):
        reply = ask(people, "0.1", "triangle", **query)
        assert reply.status_code == 422
        assert reply.json()["type"].endswith("unsupported-query")


def test_id3_is_meant_where_no_algorithm_is_named(added: Service) -> None:
    reply = ask(added, kind="tree", max_depth=1)
    trees_of(reply)
    assert reply.json()["query"]["algorithm"] == "id3"
    again = ask(added, **reply.json()["query"])
    trees_of(again)


def test_another_class_attribute_may_be_told(added: Service) -> None:
    (tree,) = trees_of(
        ask(added, **ID3, class_attribute="sex", attributes=["paid", "age"], max_depth=2)
    )
    assert labels_of_branches(tree) <= {"f", "m"}


def labels_of_branches(tree: dict[str, Any]) -> set[str]:
    if "label" in tree:
        assert set(tree["counts"]) == {"f", "m"}
        return {tree["label"]}
    return {label for way in tree["branches"].values() for label in labels_of_branches(way)}


def test_a_released_tree_is_a_candidate_of_a_selection(added: Service) -> None:
    (grown,) = trees_of(ask(added, **ID3, max_depth=2))
    (evolved,) = trees_of(ask(added, **SEARCH))
    query = {
        "kind": "selection",
        "candidates": {"trees": [grown, evolved], "positive_class": "yes"},
        "utilities": [{"name": "true_positive_rate"}],
    }
    reply = ask(added, **query)
    assert reply.status_code == 201, reply.text


def test_the_catalogue_has_all_algorithms(added: Service) -> None:
    kinds = added("ana", "GET", "/v1/catalogue").json()["queries"]
    (tree,) = [kind for kind in kinds if kind["kind"] == "tree"]
    assert [entry["name"] for entry in tree["algorithms"]] == [
        "id3",
        "evolutionary",
        "forest",
        "naive_bayes",
    ]
    assert tree["parameters"]["algorithm"]["default"] == "id3"
    assert tree["parameters"]["criterion"]["default"] in ("gini", "information_gain", "max")
    assert tree["parameters"]["criterion"]["algorithms"] == ["id3"]
    depth = tree["parameters"]["max_depth"]["by_algorithm"]
    assert (depth["id3"]["maximum"], depth["evolutionary"]["maximum"]) == (64, 11)
    assert tree["parameters"]["selector"]["algorithms"] == ["id3", "evolutionary", "forest"]
    assert json.dumps(tree["definitions"])
