"""The totals of allowances are the same whichever way the database adds them up."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from storage.ledger import totals as of_totals
from storage.ledger.totals import Total, totals
from tests.support.world import World, loss, request


def test_totals_of_few_and_of_all_datasets_are_equal(world: World) -> None:
    datasets = [world.ready(loss(2))[0] for _ in range(5)]
    for number, dataset in enumerate(datasets):
        for _ in range(2):
            analyst = world.analyst()
            world.grant(dataset, analyst, loss(1))
            world.ledger.reserve(request(dataset, analyst, loss(f"0.{number + 1}")))
    names = [dataset.name for dataset in datasets]
    with world.database.read() as connection:
        whole = totals(connection, names)
        one_by_one = [totals(connection, [name]) for name in names]
        assert totals(connection, ["none", names[0]]) == {
            "none": Total(0, loss(0)),
            names[0]: whole[names[0]],
        }
    assert {name: one[name] for name, one in zip(names, one_by_one, strict=True)} == whole
    assert [whole[name].accounts for name in names] == [3] * 5
    charged = [whole[name].charged.epsilon_nano for name in names]
    assert charged == [2 * 10**8 * number for number in range(1, 6)]


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_all_totals_are_one_pass_and_few_are_not(world: World) -> None:
    def plan(statement: object) -> str:
        compiled = str(
            statement.compile(world.database.engine, compile_kwargs={"literal_binds": 1})
        )
        with world.database.read() as connection:
            rows = connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}")).all()
        return " ".join(row[3] for row in rows)

    assert "SCAN budget_account" in plan(of_totals._of_all())
    assert "SEARCH budget_account" in plan(of_totals._of_some([1, 2]))
