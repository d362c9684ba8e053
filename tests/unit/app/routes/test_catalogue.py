"""The catalogue lists all queries, and its facts are correct."""

from __future__ import annotations

from typing import Any

import pytest

from app.contract.catalogue import Catalogue
from app.queries import QUERY_KINDS
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import OBJECTIVES
from mechanisms.selection import JOINT_SELECTORS, SELECTORS
from mechanisms.selection.automatic import RULES
from mechanisms.utilities import UTILITIES
from tests.support.service import Service


@pytest.fixture
def catalogue(people: Service) -> dict[str, Any]:
    body: dict[str, Any] = people("ana", "GET", "/v1/catalogue").json()
    return body


def test_it_lists_all_that_is_registered(catalogue: dict[str, Any]) -> None:
    assert len(catalogue["queries"]) == len(QUERY_KINDS)
    for part, registered in (
        ("utilities", UTILITIES),
        ("objectives", OBJECTIVES),
        ("selectors", [*SELECTORS, *JOINT_SELECTORS]),
        ("sensitivities", list(Sensitivity)),
    ):
        assert [entry["name"] for entry in catalogue[part]] == list(registered)
    kinds = {utility.candidates for utility in UTILITIES.values()}
    assert {entry["kind"] for entry in catalogue["candidates"]} == kinds
    listed = [name for entry in catalogue["candidates"] for name in entry["utilities"]]
    assert sorted(listed) == sorted(UTILITIES)


def test_every_part_is_explained(catalogue: dict[str, Any]) -> None:
    expected = {
        "candidates": {"kind", "description", "parameters", "required", "utilities"},
        "utilities": {"name", "title", "description", "source", "candidates", "shift",
                      "neighbouring", "sensitivity", "joint_influence"},
        "objectives": {"name", "title", "description", "source", "sensitivity", "shift", "joint"},
        "sensitivities": {"name", "description", "advanced"},
        "selectors": {"name", "title", "description", "source", "noisy_max", "advanced"},
        "automatic": {"ranking", "k", "from_epsilon_each", "sensitivity", "reason"},
        "stages": {"ranking", "k", "from_epsilon", "from_epsilon_each", "beyond", "reason"},
    }  # fmt: skip
    for part, keys in expected.items():
        assert catalogue[part]
        for entry in catalogue[part]:
            assert set(entry) == keys
            texts = [value for value in entry.values() if isinstance(value, str)]
            assert all(text.strip() for text in texts)


def test_what_serves_comparisons_is_advanced(catalogue: dict[str, Any]) -> None:
    for part, advanced in (("sensitivities", ["flattened"]), ("selectors", ["exponential"])):
        assert [entry["name"] for entry in catalogue[part] if entry["advanced"]] == advanced
    parts = list(catalogue)
    assert parts.index("automatic") < min(parts.index("sensitivities"), parts.index("selectors"))
    for query in catalogue["queries"]:
        # A parameter that the dashboard folds away needs a default. Its first choice is the
        # default, auto.
        assert set(query["advanced"]) <= set(query["parameters"]) - set(query["required"])
    top = next(query for query in catalogue["queries"] if query["kind"] == "top_k")
    assert {"sensitivity", "selector", "draws"} <= set(top["advanced"])
    for name in ("sensitivity", "selector", "draws"):
        assert top["parameters"][name]["enum"][0] == top["parameters"][name]["default"] == "auto"


def test_every_utility_has_the_facts_of_its_sensitivity_by_relation(
    catalogue: dict[str, Any],
) -> None:
    for entry in catalogue["utilities"]:
        utility = UTILITIES[entry["name"]]
        assert sorted(entry["sensitivity"]) == entry["neighbouring"] == sorted(utility.relations)
        assert entry["shift"] == utility.direction
        for facts in entry["sensitivity"].values():
            assert set(facts) == {"cap", "function", "horizon", "terms"}
            assert all(facts.values())


def test_every_utility_has_its_joint_influence_by_relation_and_sensitivity(
    catalogue: dict[str, Any],
) -> None:
    for entry in catalogue["utilities"]:
        assert sorted(entry["joint_influence"]) == entry["neighbouring"]
        for by_mode in entry["joint_influence"].values():
            assert set(by_mode) == {mode.value for mode in Sensitivity}
            for facts in by_mode.values():
                assert set(facts) == {"spread", "total", "squares", "one_way"}
                assert facts["one_way"] in {"up", "down", "no"}


def test_noise_of_other_kinds_is_explained(catalogue: dict[str, Any]) -> None:
    same = {entry["name"]: entry["noisy_max"] for entry in catalogue["selectors"]}
    assert "exponential noise" in same["permute_and_flip"]
    assert "Gumbel noise" in same["exponential"]
    assert "two-sided noise" in same["laplace"]


def test_every_utility_has_a_row_of_the_automatic_choice_from_no_epsilon_on(
    catalogue: dict[str, Any],
) -> None:
    assert len(catalogue["automatic"]) == len(RULES)
    for k in (1, 2):
        start = {
            row["ranking"]
            for row in catalogue["automatic"]
            if row["from_epsilon_each"] == "0" and row["k"] in ("any", "1" if k == 1 else "2+")
        }
        sums = {f"weighted_sum of {utility.candidates}" for utility in UTILITIES.values()}
        assert start == {*UTILITIES, *sums, "pareto"}


def test_the_limits_are_those_in_effect(people: Service) -> None:
    limits = people("olga", "GET", "/v1/catalogue").json()["limits"]
    assert limits["preparation_limit"] == people.settings.preparation_limit
    assert limits["memory_limit"] == people.settings.memory_limit
    assert limits["upload_bytes"] == people.settings.upload_limit
    assert limits["release_interval_seconds"] == 0


def test_it_is_made_once(people: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    first = people("ana", "GET", "/v1/catalogue")
    monkeypatch.delattr("app.usecases.catalogue.vocabulary")
    second = people("olga", "GET", "/v1/catalogue")
    assert (second.status_code, second.content) == (200, first.content)
    Catalogue.model_validate_json(first.content, strict=True)
