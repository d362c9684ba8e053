"""The public work of a query: a function of the description, with a speed for each kind of work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries import QUERY, QUERY_KINDS
from app.queries.parts.cost import Speed, Speeds
from app.queries.parts.examples import ADULT, GITHUB
from app.queries.parts.query import Query
from app.service.made_up import SHAPES, made_up, table_domain
from app.service.speeds import FEW, kinds_of_work, references
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation, TableDomain
from mechanisms.model.tree_shape import MAX_NODES
from mechanisms.model.work import Amount, Work, times, together, work
from mechanisms.trees.id3.grow import ATTRIBUTE, COUNT, NODE
from mechanisms.trees.id3.stop_rule import PER_SPLIT

TABLE = Dataset("t", NeighbouringRelation.ADD_REMOVE, replace(table_domain(), max_rows=100_000))


#: The names under which queries state the work of drawing noise.
DRAWN = ("draw by laplace", "numbers of tables", "noisy cells", "nodes")


def examples(dataset: Dataset) -> Iterator[Query]:
    for kind in QUERY_KINDS.values():
        for body in kind.examples.every(dataset):
            yield QUERY.validate_json(json.dumps(body))


def work_of(query: Query, dataset: Dataset, epsilon_nano: int = NANO) -> Work:
    return query.work(dataset, PrivacyLoss(epsilon_nano, query.delta_atto()))


@pytest.mark.long
def test_every_kind_of_work_of_any_query_is_timed() -> None:
    """A kind of query whose work no reference contains would raise KeyError at its first quote."""
    timed = kinds_of_work()
    for dataset in (TABLE, GITHUB):
        for query in examples(dataset):
            assert work_of(query, dataset).keys() <= timed, query
    with pytest.raises(KeyError, match="unheard of"):
        Speeds(0.0, {kind: Speed(0.0, 0.0) for kind in timed}).seconds(work("unheard of", 1))


def test_gaussian_noise_is_timed_and_costs_more_than_laplace_noise() -> None:
    seen = 0
    for dataset in (TABLE, GITHUB):
        for kind in QUERY_KINDS.values():
            for body in kind.examples.gaussian(dataset):
                query, rho = QUERY.validate_json(json.dumps(body)), PrivacyLoss(0, 0, 10**12, 1)
                stated, pure = query.work(dataset, rho), work_of(query, dataset)
                assert stated.keys() <= kinds_of_work()
                seen += 1
                if kind.name == "clustering":
                    # A clustering chooses its number of iterations by the loss, so its work is
                    # compared per call.
                    each = [one["clusters"].units / one["clusters"].calls for one in (stated, pure)]
                    assert each[0] > each[1]
                    continue
                drawn = next(one for one in stated if one in DRAWN)
                if drawn == "nodes":
                    # Noise is a small part of the work of a tree node, but large noise changes the
                    # number of nodes. So the work is compared at a loss with small noise.
                    little = query.work(dataset, PrivacyLoss(0, 0, 10**18, 1))
                    assert little[drawn].units > work_of(query, dataset, 1000 * NANO)[drawn].units
                    continue
                assert stated[drawn].units == 4 * pure[drawn].units
    assert seen == 8


def test_a_kind_of_query_states_its_work() -> None:
    assert "work" in Query.__abstractmethods__
    for dataset in (TABLE, GITHUB):
        for query in examples(dataset):
            assert not type(query).__abstractmethods__
            assert type(query).work is not Query.work


def test_work_grows_with_what_the_description_allows() -> None:
    """The number of records or nodes that there are is not an argument."""
    for query in examples(GITHUB):
        at = [
            work_of(query, replace(GITHUB, domain=GraphDomain(n, 900))) for n in (10**3, 5 * 10**4)
        ]
        assert at[0].keys() == at[1].keys()
        assert all(at[0][kind].units <= at[1][kind].units for kind in at[0])
    domain = table_domain()
    for relation in (NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE):
        added = relation is NeighbouringRelation.ADD_REMOVE
        tables = [
            Dataset("t", relation, replace(domain, max_rows=rows, rows=None if added else rows))
            for rows in (10**3, 10**5)
        ]
        for query in examples(tables[0]):
            at = [work_of(query, table) for table in tables]
            assert at[0].keys() == at[1].keys()
            assert all(at[0][kind].units <= at[1][kind].units for kind in at[0])


@pytest.mark.long
def test_a_cost_is_one_for_all_records_of_a_description() -> None:
    """Records of every shape have the description of their size, and nothing else is read."""
    for same in zip(*(made_up(64, shape) for shape in ("constant", "random")), strict=True):
        (_, one), (_, other) = same
        assert one == other
        for query in examples(one):
            loss = PrivacyLoss(NANO, query.delta_atto())
            assert query.cost(one, loss) == query.cost(other, loss)


SMOOTH: dict[str, Any] = {
    "kind": "statistic",
    "statistic": "median",
    "attribute": "age",
    "mechanism": "smooth_sensitivity",
    "delta": "0.000001",
}


def test_a_smooth_median_costs_more_for_a_smaller_loss_and_names_what_to_lower() -> None:
    query = QUERY.validate_json(json.dumps(SMOOTH))
    (kind,) = work_of(query, ADULT)
    units = [work_of(query, ADULT, nano)[kind].units for nano in (NANO, NANO // 10)]
    assert units[0] * 4 < units[1]
    assert "mechanism" in query.lowerable()


def test_a_tree_costs_no_more_nodes_than_it_may_have() -> None:
    """However deep it is: the limit is one of all depths together."""
    assert isinstance(TABLE.domain, TableDomain)
    cells = 2 * sum(len(one.levels) for one in TABLE.domain.attributes if one.name != "class")

    def units(depth: int) -> int:
        tree = QUERY.validate_json(json.dumps({"kind": "tree", "max_depth": depth}))
        return work_of(tree, TABLE, 1000 * NANO)["nodes"].units

    node, choice, limit = NODE + 3 * COUNT, NODE + 4 * ATTRIBUTE, MAX_NODES + PER_SPLIT
    # The levels of the attributes allow a tree of 1 + 300 + 900 + 1800 nodes, one number for each
    # depth. All nodes above the last depth may be split, as far as the limit on nodes allows.
    assert units(2) == 1201 * (node + cells) + 301 * choice
    assert units(3) == limit * node + 3001 * cells
    assert units(4) == limit * (node + cells)


def test_a_shortlist_and_new_scores_of_what_is_left_are_counted() -> None:
    top: dict[str, Any] = {"kind": "top_k", "k": 3, "utilities": [{"name": "degree"}]}

    def counted(**changes: Any) -> Work:
        return work_of(QUERY.validate_json(json.dumps(top | changes)), GITHUB)

    listed = counted(stages={"shortlist": 50}, selector="permute_and_flip", draws="peeled")
    assert "draw by subset" in listed
    # Each of the three draws reads the shortlist of 50 candidates.
    assert listed["draw by permute_and_flip"] == Amount(3, 150)
    pareto = {
        "utilities": [{"name": "degree"}, {"name": "egocentric_betweenness"}],
        "objective": "pareto",
        "sensitivity": "local",
        "draws": "peeled",
    }
    again = counted(**pareto, rescore=True)
    assert again["pareto again"].calls == 2
    passes = [counted(**pareto, passes=n)["pareto local"].calls for n in (1, 64)]
    assert passes == [2, 65]


def test_works_add_up() -> None:
    both = together(work("a", 2), work("b", 3, 2), times(work("a", 5), 3))
    assert both == {"a": Amount(4, 17), "b": Amount(2, 3)}
    speeds = Speeds(0.5, {"a": Speed(0.25, 1.0), "b": Speed(0.0, 2.0)})
    assert speeds.seconds(both) == 0.5 + 1.0 + 17.0 + 6.0


@pytest.mark.parametrize("context", ["baseline", "mean_su", "max_relevance", "max_dependency"])
@pytest.mark.parametrize("sensitivity", ["global", "local"])
@pytest.mark.parametrize("target", ["few", None])
def test_every_context_of_a_metric_is_timed(
    context: str, sensitivity: str, target: str | None
) -> None:
    """One context needs few attributes or one target to differ from the baseline."""
    body = {"kind": "distance", "context": context, "sensitivity": sensitivity, "target": target}
    query = QUERY.validate_json(json.dumps({**body, "context_size": None}))
    assert work_of(query, TABLE).keys() <= kinds_of_work()


def test_every_search_of_a_row_among_cells_is_counted() -> None:
    """An exponential median counts how many rows lie in each cell of its grid.

    Without a condition it searches the sorted column for the ends of the cells. Under a condition
    it searches the ends of the cells for each row, which is more work, but sorts no rows.
    """
    body = {**SMOOTH, "mechanism": "exponential", "delta": "0"}
    alone = work_of(QUERY.validate_json(json.dumps(body)), ADULT)
    where = {"attribute": "age", "from": 20}
    searched = work_of(QUERY.validate_json(json.dumps({**body, "where": where})), ADULT)
    added = {"condition", "parts of conditions", "listed values", "rows in cells"}
    assert searched.keys() - alone.keys() == added
    assert searched["rows in cells"].units > 50_000


RANGE = {"attribute": "number", "from": 1}
LISTED = {"attribute": "many", "in": ["0"]}


@pytest.mark.parametrize(
    ("short", "long", "kind"),
    [
        ({"where": {"any": [RANGE]}}, {"where": {"any": [RANGE] * 9}}, "parts of conditions"),
        ({"where": LISTED}, {"where": {"not": {"not": LISTED}}}, "parts of conditions"),
        ({"where": LISTED}, {"where": {**LISTED, "in": list("123")}}, "listed values"),
        (
            {"by": [{"attribute": "many", "groups": {"a": ["0"]}}]},
            {"by": [{"attribute": "many", "groups": {"a": ["0", "1"]}}]},
            "listed values",
        ),
        (
            {"by": [{"attribute": "number", "edges": [0, 8]}]},
            {"by": [{"attribute": "number", "edges": list(range(9))}]},
            "rows of tables",
        ),
        (
            {"where": {"attribute": "number", "in": [1]}},
            {"where": {"attribute": "number", "in": [1, 2, 3, 4]}},
            "rows of tables",
        ),
    ],
)
def test_longer_conditions_groups_and_edges_cost_more(
    short: dict[str, Any], long: dict[str, Any], kind: str
) -> None:
    """They take time however few rows there are, and a search among edges takes it for each row."""
    units = []
    for options in (short, long):
        query = QUERY.validate_json(json.dumps({"kind": "table", **options}))
        units.append(work_of(query, TABLE)[kind].units)
    assert units[0] < units[1]


def test_the_text_of_an_answer_is_timed_with_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its question may be long, and is written after the charge."""
    timed = next(iter(references(FEW, SHAPES[0]).values()))
    questions: list[int] = []
    question = type(timed.query).question

    def noted(query: Query, dataset: Dataset, version: int) -> str:
        questions.append(version)
        return question(query, dataset, version)

    monkeypatch.setattr(type(timed.query), "question", noted)
    assert timed.seconds() > 0
    assert questions
