"""Killed between any two statements and at random: nothing overspent, forgotten or answered twice.

The slow run makes more than 200 kills on SQLite alone, and the bench ``ledger_crashes`` 2,000 on
each database. Only the slow run kills in a second attempt, which takes the steps of a third one,
and in a third attempt on PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.support import scenes
from tests.support.scenes import Scene
from tests.support.victims import Nursery
from tests.support.world import World

#: How many times processes are killed at random, by database: in every run, and in the slow run.
RANDOM_KILLS = {"sqlite": 40, "postgresql": 12}
MORE_KILLS = {"sqlite": 120, "postgresql": 40}
#: At least this many steps of an attempt have a kill just before them, by database and number of
#: the attempt.
STEP_KILLS = {"sqlite": {1: 30, 2: 20, 3: 30}, "postgresql": {1: 15, 2: 15, 3: 20}}


def test_there_are_two_hundred_kills_on_sqlite_alone() -> None:
    assert MORE_KILLS["sqlite"] + sum(STEP_KILLS["sqlite"].values()) >= 200


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def in_rho() -> bool:
    """Whether the accounts count in ρ as well."""
    return False


@pytest.fixture
def scene(world: World, url: str, tmp_path: Path, in_rho: bool) -> Scene:
    return Scene(world, url, tmp_path, in_rho=in_rho)


@pytest.mark.parametrize(
    ("kind", "attempt", "in_rho"),
    [
        ("sqlite", 1, True),
        pytest.param("sqlite", 1, False, marks=pytest.mark.slow),
        pytest.param("sqlite", 2, True, marks=pytest.mark.slow),
        ("sqlite", 3, False),
        pytest.param("sqlite", 3, True, marks=pytest.mark.slow),
        pytest.param("postgresql", 1, True, marks=pytest.mark.postgres),
        pytest.param("postgresql", 1, False, marks=[pytest.mark.postgres, pytest.mark.slow]),
        pytest.param("postgresql", 2, True, marks=[pytest.mark.postgres, pytest.mark.slow]),
        pytest.param("postgresql", 3, True, marks=[pytest.mark.postgres, pytest.mark.slow]),
    ],
    indirect=["kind", "in_rho"],
)
def test_a_kill_before_any_step(scene: Scene, nursery: Nursery, kind: str, attempt: int) -> None:
    kills = scenes.kill_before_every_step(scene, nursery, attempt)
    assert kills >= STEP_KILLS[kind][attempt]


@pytest.mark.parametrize(
    ("rounds", "in_rho"),
    [
        pytest.param(RANDOM_KILLS, True, id="some"),
        pytest.param(MORE_KILLS, False, marks=pytest.mark.slow, id="more"),
        pytest.param(MORE_KILLS, True, marks=pytest.mark.slow, id="more, in rho"),
    ],
    indirect=["in_rho"],
)
def test_kills_at_random(scene: Scene, nursery: Nursery, kind: str, rounds: dict[str, int]) -> None:
    kills = scenes.kill_at_random(scene, nursery, Random(2024), rounds[kind])
    assert kills == rounds[kind]


class TestPostgresql:
    """The other end of the connection dies."""

    pytestmark = pytest.mark.postgres

    @pytest.fixture
    def kind(self) -> str:
        return "postgresql"

    @pytest.fixture
    def scene(self, world: World, url: str, tmp_path: Path, in_rho: bool) -> Scene:
        """Room for as many queries as it takes until enough backends are killed."""
        return Scene(world, url, tmp_path, room=2000, in_rho=in_rho)

    @pytest.mark.parametrize(
        "in_rho", [True, pytest.param(False, marks=pytest.mark.slow)], indirect=True
    )
    def test_backends_are_killed(self, scene: Scene, nursery: Nursery) -> None:
        assert scenes.kill_backends(scene, nursery, Random(7), 40, least=21) > 20
