"""Clusters and neighbours of rows by a private metric; private k-means on top of it.

The rows that Ward's clustering and neighbours look at are the same in every run. ε is that of the
whole metric. Synthetic tables are remade after their description: their authors' are not published.
"""

from __future__ import annotations

from benchmarks.distances import CLUSTER_TABLES, EPSILONS
from benchmarks.metric_clusters import WAYS, k_means, rows_and_classes
from benchmarks.metric_evaluation import Truth
from benchmarks.reproduction.experiment import Experiment, Setting
from benchmarks.reproduction.experiments.contexts import PAPER
from benchmarks.reproduction.result import Estimate, Result, Verdict, mean
from benchmarks.tables import SYNTHETIC, Table, read_table, synthetic

TIMES, RUNS, FEWER = 10, 30, 5
NOISES = (0.1, 0.2, 0.3)
MEASURES = {"Ward": "adjusted Rand index of Ward's clusters", "5-NN": "5-neighbour accuracy"}


def real(setting: Setting, name: str) -> Result:
    result = Result()
    measured(result, setting, read_table(setting.data, name), name, TIMES, RUNS)
    return result


def made_up(setting: Setting, letter: str) -> Result:
    result = Result()
    for noise in setting.fewer(list(NOISES)):
        name = f"synthetic {letter}, noise {noise:g}"
        measured(result, setting, synthetic(letter, noise), name, FEWER, FEWER)
    return result


def measured(
    result: Result, setting: Setting, table: Table, name: str, times: int, runs: int
) -> None:
    truth = Truth(table)
    epsilons = setting.fewer(list(EPSILONS))
    found = rows_and_classes(truth, epsilons, setting.times(times))
    shown: dict[str, dict[str, list[Estimate]]] = {
        measure: {
            way: [mean(v) if len(v) > 1 else (float(v[0]), 0.0) for v in line]
            for way, line in lines.items()
        }
        for measure, lines in found.items()
    }
    for measure, lines in shown.items():
        result.plot(name, MEASURES[measure], epsilons, lines, "ε of the metric")
    private = {
        way: [mean(values) for values in line]
        for way, line in k_means(truth, epsilons, setting.times(runs)).items()
    }
    result.plot(f"{name}, private k-means at ε = 2", "adjusted Rand index", epsilons, private,
                "ε of the metric")  # fmt: skip
    for measure, lines in shown.items():
        claims(result, name, MEASURES[measure], lines)
    learned, codes = private["learned"][-1], private["one-hot"][-1]
    clear = learned[0] - learned[1] > codes[0] + codes[1]
    wrong = learned[0] + learned[1] < codes[0] - codes[1]
    result.claim(
        PAPER, f"{name}: private k-means on the learned metric is better than on one-hot codes",
        f"{learned[0]:.3f} ± {learned[1]:.3f} against {codes[0]:.3f} ± {codes[1]:.3f} at the "
        "largest ε",
        Verdict.HOLDS if clear else Verdict.FAILS if wrong else Verdict.OPEN,
        "" if clear else "with noise on empty clusters, two clusters touched by a replacement and "
        "public bounds, which the library used in the paper leaves out, "
        + ("one-hot codes are better" if wrong else "the difference is within its interval"),
    )  # fmt: skip


def claims(result: Result, name: str, measure: str, lines: dict[str, list[Estimate]]) -> None:
    plain = lines["DILCA_M"][-1][0]
    best = max((lines[way][-1] for way in WAYS), key=lambda value: value[0])
    near = best[0] + best[1] >= 0.9 * plain
    result.claim(
        PAPER, f"{name}: {measure} by the private metric comes near that without privacy",
        f"{best[0]:.3f} ± {best[1]:.3f} at the largest ε, {plain:.3f} for DILCA_M",
        Verdict.HOLDS if near else Verdict.OTHERWISE,
        "" if near else "ε is that of the whole metric: less than nine tenths is reached",
    )  # fmt: skip


def experiments() -> list[Experiment]:
    def of(name: str, seconds: float) -> Experiment:
        return Experiment(
            f"clusters.{name}", f"Clusters of {name} by a private metric", PAPER,
            (f"{name}.csv.gz", f"{name}.schema.json"), lambda setting: real(setting, name), seconds,
        )  # fmt: skip

    def remade(letter: str) -> Experiment:
        return Experiment(
            f"clusters.synthetic_{letter.lower()}", f"Clusters of synthetic tables {letter}", PAPER,
            (), lambda setting: made_up(setting, letter), 15.0,
        )  # fmt: skip

    seconds = (20.0, 30.0, 25.0, 30.0)
    tables = [of(name, s) for name, s in zip(CLUSTER_TABLES, seconds, strict=True)]
    return [*tables, *(remade(letter) for letter in SYNTHETIC)]
