"""Recall of the true top 5 by egocentric betweenness that the service's own draws reach.

Recalls by the exponential mechanism, exact and at every ε, are experiments of the papers.
"""

from __future__ import annotations

import numpy as np

from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.result import Result
from benchmarks.selections.cases import (
    BOUNDS,
    Case,
    Floats,
    cases,
    objective_of,
    repeated_draws,
)
from mechanisms.model.sensitivity import Integers, Sensitivity

UTILITY = "egocentric_betweenness"
COUNTS = (1, 5, 10, 20)
EPSILONS = [float(f"{base}e{power}") for power in range(-3, 4) for base in (1, 3)] + [1e4]
K, TIMES = 5, 100
#: (graph, ε, least recall of ``shifted``).
EXPECTED = (("github", 0.05, 0.85), ("github", 0.3, 0.98), ("enron", 0.75, 0.95),
            ("dblp", 2.0, 0.75))  # fmt: skip


def true_order(case: Case) -> Integers:
    """All nodes by falling betweenness, ties in the public order."""
    return np.argsort(-case.records.columns[UTILITY], kind="stable")


def recalls(case: Case, sensitivity: Sensitivity, k: int, epsilon: float, times: int) -> Floats:
    """The recall of each repetition, shape (times,)."""
    found = case.scores(objective_of("single", {UTILITY: None}), sensitivity, k)
    drawn = repeated_draws(found, k, epsilon, times)
    return np.isin(drawn, true_order(case)[:k]).mean(axis=1)


def epsilon_at(line: list[float], recall: float) -> float | None:
    """Where the line first reaches ``recall``, interpolated in log ε; None if it never does."""
    for i, value in enumerate(line):
        if value >= recall:
            if i == 0 or value == line[i - 1]:
                return EPSILONS[i]
            share = (recall - line[i - 1]) / (value - line[i - 1])
            return float(EPSILONS[i - 1] * (EPSILONS[i] / EPSILONS[i - 1]) ** share)
    return None


def run(setting: Setting) -> Result:
    """Under each graph's public bound, and under nodes − 1."""
    result = Result()
    for case in cases(setting.data, list(BOUNDS), (True,) if setting.quick else (True, False)):
        for name, epsilon, _ in EXPECTED:
            if name != case.name:
                continue
            for sensitivity in (Sensitivity.SHIFTED, Sensitivity.GLOBAL):
                where = f"{name}, max_degree {case.bound}, ε = {epsilon:g}: {sensitivity}"
                times = setting.times(TIMES)
                result.estimate(where, recalls(case, sensitivity, K, epsilon, times))
    return result


BENCHES = (
    Bench(
        "recall",
        "How many of the true top 5 by betweenness do private draws find?",
        run,
        60.0,
        ("sensitivity global",),
        (
            Bar("*: global", most=0.05),
            *(
                Bar(f"{name}, max_degree *, ε = {epsilon:g}: shifted", least=least)
                for name, epsilon, least in EXPECTED
            ),
        ),
        edges_of(*BOUNDS),
    ),
)
