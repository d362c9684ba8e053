"""Contexts and matrices of every way to learn, against the same way without noise."""

from __future__ import annotations

import numpy as np

from benchmarks.context_quality import quality
from benchmarks.distances import CONTEXT_TABLES, EPSILONS
from benchmarks.metric_evaluation import Truth
from benchmarks.reproduction.experiment import Experiment, Setting
from benchmarks.reproduction.experiments.contexts import PAPER
from benchmarks.reproduction.result import Result, Verdict, mean
from benchmarks.tables import read_table

TIMES = 12


def run(setting: Setting, table: str) -> Result:
    result = Result()
    truth = Truth(read_table(setting.data, table))
    epsilons = setting.fewer(list(EPSILONS))
    found = quality(truth, epsilons, setting.times(TIMES))
    for measure, arms in found.items():
        lines = {arm: [mean(values) for values in line] for arm, line in arms.items()}
        result.plot(f"{table}, k = 3, h = 0.3", measure, epsilons, lines, "ε a target")
        result.kept[measure] = {arm: [v for v, _ in line] for arm, line in lines.items()}
    if "correlation" in found:
        claims(result, table, found["correlation"])
    result.kept["epsilons"] = epsilons
    return result


def claims(result: Result, table: str, correlation: dict[str, list[np.ndarray]]) -> None:
    ours = correlation["max_relevance global"]
    last = mean(ours[-1])
    high = last[0] >= 0.9
    result.claim(
        PAPER, f"{table}: with little ε the private distances are close to those without privacy",
        f"correlation {last[0]:.3f} ± {last[1]:.3f} at the largest ε, max_relevance",
        Verdict.HOLDS if high else Verdict.OTHERWISE if last[0] >= 0.5 else Verdict.FAILS,
        "" if high else "the table is small beside the noise of its contingency tables",
    )  # fmt: skip
    gaps = [mean(a - b) for a, b in zip(ours, correlation["baseline mean_su"], strict=True)]
    worse, better = (sum(sign * value > half for value, half in gaps) for sign in (-1, 1))
    result.claim(
        PAPER, f"{table}: choosing a context privately beats the baseline that releases all pairs",
        f"clearly better at {better}, clearly worse at {worse} of {len(gaps)} ε",
        Verdict.HOLDS if better and not worse else Verdict.FAILS if worse and not better
        else Verdict.OTHERWISE if better else Verdict.OPEN,
        "" if better and not worse else "each way is compared with itself without noise; few "
        "attributes make the baseline's tables cheap",
    )  # fmt: skip


def experiments() -> list[Experiment]:
    seconds = dict(zip(CONTEXT_TABLES, (55.0, 60.0, 4.0, 25.0, 12.0, 15.0), strict=True))

    def of(table: str) -> Experiment:
        return Experiment(
            f"distances.{table}", f"Private distances on {table}", PAPER,
            (f"{table}.csv.gz", f"{table}.schema.json"), lambda setting: run(setting, table),
            seconds[table],
        )  # fmt: skip

    return [of(table) for table in CONTEXT_TABLES]
