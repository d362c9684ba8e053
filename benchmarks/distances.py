"""Metrics and clusters against ε: contexts, matrices, Ward clusters, neighbours, private k-means.

    python -m benchmarks.distances --data DIR [--quick] [--tables NAME …]

30 repetitions, 100 of k-means, k = 3, h = 0.3; numeric attributes in five public bins. ε is that of
one target for contexts and matrices, that of the whole metric for clusters and neighbours. Private
rows are read to evaluate, here alone.

Expected, status 1 when a sign flips beyond a 99 % interval: the baseline's correlation is not above
the others' on dermatology and soybean; correlations rise with ε; so do adjusted F-scores, but for
``mean_su``, which small tables drown. Clusters, neighbours and k-means are reported, not judged.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from benchmarks.context_quality import MEASURES, Line, held, quality
from benchmarks.graphs import data_option
from benchmarks.metric_clusters import at_chance, k_means, rows_and_classes
from benchmarks.metric_evaluation import Truth, interval
from benchmarks.selections import plot
from benchmarks.tables import SYNTHETIC, Table, read_table, synthetic

RESULTS = Path(__file__).parent / "results"
NAME = "distances.json"
CONTEXT_TABLES = ("dermatology", "soybean", "cmc", "mushroom", "nltcs", "adult_full")
CLUSTER_TABLES = ("dermatology", "soybean", "mushroom", "adult")
MADE_UP = tuple(f"{name} {noise:g}" for name in SYNTHETIC for noise in (0.1, 0.2, 0.3))
EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.75, 2.5)
#: By measure, table and line.
Results = dict[str, dict[str, dict[str, Line]]]
#: The same, of each line a mean and half the width of its interval at every ε.
Saved = dict[str, dict[str, dict[str, list[tuple[float, float]]]]]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--runs", type=int, default=100, help="runs of private k-means")
    every = list(dict.fromkeys((*CONTEXT_TABLES, *CLUSTER_TABLES, *MADE_UP)))
    parser.add_argument("--tables", nargs="+", choices=every, default=every, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="10 repetitions of three ε")
    options = parser.parse_args(arguments)
    epsilons: Sequence[float] = EPSILONS
    if options.quick:
        epsilons, options.times, options.runs = (0.1, 0.5, 2.5), 10, 10
    RESULTS.mkdir(exist_ok=True)
    ok = True
    for name in options.tables:
        truth = Truth(named(options.data, name))
        found: dict[str, dict[str, Line]] = {}
        if name in (*CONTEXT_TABLES, *MADE_UP):
            found |= quality(truth, epsilons, options.times)
        if name in (*CLUSTER_TABLES, *MADE_UP):
            found |= rows_and_classes(truth, epsilons, options.times)
            found["k-means"] = k_means(truth, epsilons, options.runs)
        for measure, lines in found.items():
            show(f"{name}: {measure}", lines, epsilons)
        ok &= held(name, {measure: found[measure] for measure in MEASURES if measure in found})
        for line in found.get("k-means", {}):
            if at_chance(found["k-means"][line]):
                print(f"- k-means, {line}: at chance at every ε")
        print(f"({process_time():.0f} s of computing so far)", flush=True)
        save({measure: {name: lines} for measure, lines in found.items()}, epsilons)
    pictures(epsilons)
    return 0 if ok else 1


def named(folder: Path, name: str) -> Table:
    """A real table, or a made-up one by its letter and noise."""
    if name not in MADE_UP:
        return read_table(folder, name)
    letter, noise = name.split()
    return synthetic(letter, float(noise))


def show(title: str, lines: dict[str, Line], epsilons: Sequence[float]) -> None:
    """A table of means ± half a 99 % interval, at each ε."""
    print(f"\n| {title} | " + " | ".join(f"ε {epsilon:g}" for epsilon in epsilons) + " |")
    print("|---" * (len(epsilons) + 1) + "|")
    for name, line in lines.items():
        cells = [
            f"{mean:.3f}" if len(values) == 1 else f"{mean:.3f} ± {half:.3f}"
            for values in line
            for mean, half in [interval(values)]
        ]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def save(results: Results, epsilons: Sequence[float]) -> None:
    """Every mean with its interval as JSON, beside those of tables measured before."""
    saved = loaded(epsilons)
    for measure, by_table in results.items():
        for table, lines in by_table.items():
            saved.setdefault(measure, {})[table] = {
                name: [interval(values) if len(values) > 1 else (float(values[0]), 0.0)
                       for values in line] for name, line in lines.items()
            }  # fmt: skip
    kept = {"epsilons": list(epsilons), "measures": saved}
    (RESULTS / NAME).write_text(json.dumps(kept, ensure_ascii=False))


def loaded(epsilons: Sequence[float]) -> Saved:
    """What was measured before at the same ε."""
    path = RESULTS / NAME
    before = json.loads(path.read_text()) if path.exists() else {"epsilons": []}
    found: Saved = before["measures"] if before["epsilons"] == list(epsilons) else {}
    return found


def pictures(epsilons: Sequence[float]) -> None:
    """One picture a measure, one panel a table."""
    for measure, shown in loaded(epsilons).items():
        panels = {
            table: {name: [mean for mean, _ in line] for name, line in lines.items()}
            for table, lines in shown.items()
        }
        width = next(width for width in (6, 5, 4, 3, 2, 1) if len(panels) % width == 0)
        titles = list(panels)
        rows = [titles[start : start + width] for start in range(0, len(titles), width)]
        name = measure.replace(" ", "_").lower()
        plot([{title: panels[title] for title in row} for row in rows], epsilons,
             RESULTS / f"distances_{name}.png")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
