"""Every kind states what a query asks in one plain sentence, from public facts alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.queries import QUERY, QUERY_KINDS
from app.queries.parts.examples import ADULT, GITHUB
from app.service.warm import stored_types
from mechanisms.model.domains import Dataset

STUMP = {
    "attribute": "sex",
    "value": "Male",
    "equal": {"label": ">50K"},
    "other": {"label": "<=50K"},
}
SENTENCES: list[tuple[Dataset, dict[str, Any], str]] = [
    (
        GITHUB,
        {"kind": "selection", "utilities": [{"name": "degree"}]},
        "Which node of github version 3 has the highest degree?",
    ),
    (
        GITHUB,
        {"kind": "top_k", "k": 10, "utilities": [{"name": "egocentric_betweenness"}]},
        "Which 10 nodes of github version 3 have the highest egocentric betweenness?",
    ),
    (
        GITHUB,
        {
            "kind": "top_k",
            "k": 1,
            "objective": "weighted_sum",
            "utilities": [{"name": "degree", "weight": 2}, {"name": "egocentric_density"}],
        },
        "Which node of github version 3 has the highest weighted sum of 2 × degree and "
        "egocentric density?",
    ),
    (
        GITHUB,
        {
            "kind": "selection",
            "objective": "pareto",
            "utilities": [
                {"name": "degree"},
                {
                    "weighted_sum": [
                        {"name": "egocentric_density", "weight": -1},
                        {"name": "egocentric_betweenness", "weight": 0.5},
                    ]
                },
            ],
        },
        "Which node of github version 3 has the highest Pareto score of degree and the weighted "
        "sum (-1 × egocentric density + 0.5 × egocentric betweenness)?",
    ),
    (
        ADULT,
        {
            "kind": "selection",
            "candidates": {"attributes": ["sex", "age"], "class_attribute": "occupation"},
            "utilities": [{"name": "gini"}],
        },
        "Which attribute of adult version 3, out of sex and age, has the highest Gini gain about "
        "occupation?",
    ),
    (
        ADULT,
        {
            "kind": "selection",
            "candidates": {"attributes": ["sex", "age", "occupation"]},
            "utilities": [{"name": "information_gain"}],
        },
        "Which attribute of adult version 3, out of sex, age and occupation, has the highest "
        "information gain about income?",
    ),
    (
        ADULT,
        {
            "kind": "top_k",
            "k": 2,
            "candidates": {"values_of": "occupation"},
            "utilities": [{"name": "count"}],
        },
        "Which 2 values of occupation in adult version 3 have the highest count?",
    ),
    (
        ADULT,
        {
            "kind": "selection",
            "candidates": {"trees": [STUMP, {"label": ">50K"}], "positive_class": ">50K"},
            "utilities": [{"name": "true_positive_rate"}],
        },
        "Which decision tree of the 2 given, on adult version 3, has the highest true positive "
        "rate for the value >50K of income?",
    ),
    (
        ADULT,
        {"kind": "tree", "max_depth": 3, "attributes": ["sex", "age"]},
        "Which decision tree of depth at most 3 predicts income from sex and age in adult version "
        "3?",
    ),
    (
        ADULT,
        {
            "kind": "tree",
            "algorithm": "evolutionary",
            "positive_class": "Female",
            "class_attribute": "sex",
            "outputs": 3,
        },
        "Which 3 decision trees of depth at most 5 best tell the value Female of sex from its "
        "other values using all other attributes in adult version 3?",
    ),
    (
        ADULT,
        {"kind": "tree", "algorithm": "forest", "trees": 4},
        "How do 4 decision trees of depth at most 5 together predict income from all other "
        "attributes in adult version 3?",
    ),
    (
        ADULT,
        {"kind": "tree", "algorithm": "naive_bayes", "attributes": ["sex", "age"]},
        "How many records of adult version 3 have each value of income and, for each of these "
        "values, how many have each value of sex and age, one attribute at a time?",
    ),
    (
        ADULT,
        {"kind": "distance", "target": "occupation"},
        "How far apart are the values of occupation in adult version 3, judged by the other "
        "attributes?",
    ),
    (
        ADULT,
        {"kind": "distance"},
        "How far apart are the values of every attribute in adult version 3, judged by the other "
        "attributes?",
    ),
    (
        ADULT,
        {"kind": "distance", "attributes": ["sex", "age"]},
        "How far apart are the values of each of sex and age in adult version 3, judged by the "
        "others of these?",
    ),
    (
        ADULT,
        {"kind": "distance", "target": "sex", "attributes": ["sex", "age", "occupation"]},
        "How far apart are the values of sex in adult version 3, judged by age and occupation?",
    ),
    (
        ADULT,
        {"kind": "clustering", "clusters": 1, "encoding": "one_hot"},
        "Where do the centres of 1 cluster of the records of adult version 3 lie, with every "
        "value, or bin of a number, as a 0/1 code?",
    ),
    (
        ADULT,
        {"kind": "clustering", "clusters": 3, "distance": {"attributes": ["sex", "age"]}},
        "Where do the centres of 3 clusters of the records of adult version 3 lie, clustered by "
        "sex and age, with learned distances between values?",
    ),
    (
        ADULT,
        {"kind": "statistic", "statistic": "count"},
        "How many records of adult version 3 are there?",
    ),
    (
        ADULT,
        {
            "kind": "statistic",
            "statistic": "count",
            "where": {
                "all": [
                    {"attribute": "age", "from": 20, "to": 30},
                    {"any": [{"attribute": "sex", "in": ["Male"]}, {"attribute": "age", "to": 9}]},
                    {"not": {"attribute": "occupation", "in": ["Craft", "Sales"]}},
                ]
            },
        },
        "How many records of adult version 3 are there where (age is at least 20 and below 30), "
        "(sex is Male or age is below 9) and not (occupation is Craft or Sales)?",
    ),
    (
        ADULT,
        {"kind": "statistic", "statistic": "quantile", "attribute": "age", "quantile": 0.25},
        "What is the 0.25 quantile of age over the records of adult version 3?",
    ),
    (
        ADULT,
        {"kind": "statistic", "statistic": "mean", "attribute": "age"},
        "What is the mean of age over the records of adult version 3?",
    ),
    (
        ADULT,
        {
            "kind": "table",
            "by": ["sex", {"attribute": "age", "edges": [0, 40]}],
            "aggregates": [
                {"name": "count"},
                {"name": "mean", "attribute": "age"},
                {"name": "quantiles", "attribute": "age", "quantiles": [0.1, 0.5]},
            ],
            "where": {"attribute": "income", "in": [">50K"]},
        },
        "What are the number of records, the mean of age and the 0.1 and 0.5 quantiles of age in "
        "adult version 3, by sex and age (0 to 40), where income is >50K?",
    ),
    (
        ADULT,
        {
            "kind": "table",
            "by": [
                {"attribute": "occupation", "groups": {"hands": ["Craft", "Service"], "rest": []}},
                "marital_status",
            ],
            "aggregates": [{"name": "quantiles", "attribute": "age", "quantiles": [0.5]}],
            "totals": {"measured": [["marital_status"], []], "share": "0.25"},
        },
        "What is the 0.5 quantile of age in adult version 3, by occupation (grouped as “hands”: "
        "Craft or Service; “rest”: no value) and marital_status, and the same measured once "
        "more by marital_status alone and overall?",
    ),
    (
        ADULT,
        {"kind": "table", "aggregates": [{"name": "quantiles", "attribute": "age"}]},
        "What are the 0.25, 0.5 and 0.75 quantiles of age in adult version 3?",
    ),
    (
        ADULT,
        {"kind": "table"},
        "What is the number of records in adult version 3?",
    ),
    (
        ADULT,
        {
            "kind": "statistic",
            "statistic": "median",
            "attribute": "age",
            "where": {"attribute": "sex", "in": ["Female"]},
        },
        "What is the median of age over the records of adult version 3 where sex is Female?",
    ),
    (
        GITHUB,
        {"kind": "statistic", "statistic": "triangles"},
        "How many triangles does github version 3 have?",
    ),
    (
        GITHUB,
        {"kind": "statistic", "statistic": "stars", "k": 3},
        "How many stars of 3 edges does github version 3 have?",
    ),
]


@pytest.mark.parametrize(("dataset", "body", "sentence"), SENTENCES)
def test_a_question_is_one_plain_sentence(
    dataset: Dataset, body: dict[str, Any], sentence: str
) -> None:
    assert QUERY.validate_json(json.dumps(body)).question(dataset, 3) == sentence


def test_every_query_has_a_question_that_names_dataset_and_version() -> None:
    for _, dataset in stored_types():
        for kind in QUERY_KINDS.values():
            for body in kind.examples.every(dataset):
                sentence = QUERY.validate_json(json.dumps(body)).question(dataset, 12)
                assert sentence[0].isupper()
                assert sentence.endswith("?")
                assert sentence.count("?") == 1
                assert "warm version 12" in sentence
                assert "None" not in sentence
                assert "_" not in sentence


def test_a_long_list_of_groups_is_cut() -> None:
    groups = {f"g{number}": [str(number)] for number in range(40)}
    body = {"kind": "table", "by": [{"attribute": "open", "groups": groups}]}
    sentence = QUERY.validate_json(json.dumps(body)).question(ADULT, 1)
    assert sentence.endswith(
        ", by open (grouped as “g0”: 0; “g1”: 1; “g2”: 2; “g3”: 3; “g4”: 4; 35 more)?"
    )


def test_a_long_list_is_cut() -> None:
    condition = {"attribute": "age", "in": [*range(900)]}
    body = {"kind": "statistic", "statistic": "count", "where": condition}
    sentence = QUERY.validate_json(json.dumps(body)).question(ADULT, 1)
    assert sentence.endswith("where age is 0, 1, 2, 3, 4 or 895 others?")


@pytest.mark.parametrize(
    ("where", "phrase"),
    [
        ({"all": []}, "the condition always holds"),
        ({"any": []}, "the condition never holds"),
        ({"attribute": "age", "in": []}, "the condition never holds"),
        ({"attribute": "age", "to": 3.0}, "age is below 3"),
        ({"attribute": "age", "in": [1234567.5, 7.0, "7.0"]}, "age is 1234567.5, 7 or 7.0"),
        (
            {"any": [{"attribute": "sex", "in": ["a", "b"]}, {"attribute": "age", "from": 65}]},
            "(sex is a or b) or age is at least 65",
        ),
        ({"attribute": "day", "from": "2024-01-01"}, "day is on or after 2024-01-01"),
        (
            {"attribute": "day", "from": "2024-01-01", "to": "2024-07-01"},
            "day is on or after 2024-01-01 and before 2024-07-01",
        ),
    ],
)
def test_a_condition_at_the_edge_has_words(where: dict[str, Any], phrase: str) -> None:
    body = {"kind": "statistic", "statistic": "count", "where": where}
    sentence = QUERY.validate_json(json.dumps(body)).question(ADULT, 1)
    assert sentence.endswith(f"where {phrase}?")
