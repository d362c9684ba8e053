"""The worked examples and constants of the papers, by definition and by enumeration; all exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import exp, log, log2

import numpy as np

from accounting.privacy_loss import ATTO, NANO
from benchmarks.bench import Bench, Setting
from benchmarks.reproduction.experiments.contexts import PAPER as DISTANCES
from benchmarks.reproduction.experiments.influential_nodes import PAPER as DAMPENING
from benchmarks.reproduction.experiments.salaries import PAPER as NOISE
from benchmarks.reproduction.experiments.weighted_nodes import PAPER as MULTI
from benchmarks.result import Cell, Result, Verdict
from mechanisms.statistics.release.ladder import rung_probabilities
from mechanisms.statistics.smoothness import largest_beta

#: A graph is one set of neighbours a node.
Graph = tuple[frozenset[int], ...]

#: The example graph: two hubs a, b and six others.
NAMES = ("a", "b", "v0", "v1", "v2", "v3", "v4", "v5")
EDGES = ("a-b", "a-v0", "a-v1", "a-v2", "a-v3", "b-v2", "b-v3", "b-v4", "b-v5", "v0-v1", "v4-v5")


def graph_of(nodes: int, edges: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> Graph:
    found: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in edges:
        found[a].add(b)
        found[b].add(a)
    return tuple(map(frozenset, found))


def flipped(graph: Graph, a: int, b: int) -> Graph:
    changed = list(graph)
    changed[a] ^= {b}
    changed[b] ^= {a}
    return tuple(changed)


def betweenness(graph: Graph, v: int) -> Fraction:
    """Egocentric: Σ over pairs of neighbours that are not adjacent of 1/(1 + shared in N(v))."""
    around = graph[v]
    return sum(
        (
            Fraction(1, 1 + len(graph[a] & graph[b] & around))
            for a, b in combinations(sorted(around), 2)
            if b not in graph[a]
        ),
        Fraction(0),
    )


def two_triangles(graph: Graph) -> Fraction:
    shared = (len(graph[a] & graph[b]) for a, b in combinations(range(len(graph)), 2)
              if b in graph[a])  # fmt: skip
    return Fraction(sum(c * (c - 1) // 2 for c in shared))


def most_moved(graph: Graph, value: Callable[[Graph], Fraction]) -> Fraction:
    """LS at distance 0: over all flips of one edge."""
    here = value(graph)
    pairs = combinations(range(len(graph)), 2)
    return max(abs(value(flipped(graph, a, b)) - here) for a, b in pairs)


def of(v: int) -> Callable[[Graph], Fraction]:
    return lambda graph: betweenness(graph, v)


def selection(setting: Setting) -> Result:  # noqa: ARG001 - exact, without data
    result = Result()
    edges = [tuple(NAMES.index(end) for end in edge.split("-")) for edge in EDGES]
    graph = graph_of(len(NAMES), [(a, b) for a, b in edges])
    near = [graph, *(flipped(graph, a, b) for a, b in combinations(range(len(NAMES)), 2))]
    now = [most_moved(graph, of(v)) for v in range(len(NAMES))]
    after = [max(most_moved(g, of(v)) for g in near) for v in range(len(NAMES))]
    result.table(
        "the example graph: betweenness and local sensitivity, by enumeration",
        ["node", "betweenness", "LS at distance 0", "LS at distance 1"],
        [[name, *((float(x), 0.0) for x in (betweenness(graph, v), now[v], after[v]))]
         for v, name in enumerate(NAMES)],
    )  # fmt: skip
    result.claim(
        DAMPENING, "Example 4.2: the local sensitivity of v2 and v3 is 2",
        f"{now[4]} and {now[5]}", Verdict.FAILS, "no edge moves their betweenness by more than one",
    )  # fmt: skip
    dampened = -Fraction(1, 2) / now[0]
    result.claim(
        DAMPENING, "Example 4.2: after the shift by −7, D(a) = 0.1",
        f"u = 13/2 − 7 = −1/2, δ(a, 0) = {now[0]}, so D(a) = {dampened}", Verdict.FAILS,
        "dampening keeps the sign of the utility; an error of arithmetic",
    )  # fmt: skip
    weights = [exp(float(dampened))] * 2 + [exp(-2.0)] * 6
    result.claim(
        DAMPENING, "Example 4.2: the hubs are drawn with probability 0.472, the others with 0.0046",
        f"{weights[0] / sum(weights):.3f} and {weights[-1] / sum(weights):.3f} at ε = 2",
        Verdict.OTHERWISE, "follows from the wrong D(a)",
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for bound in range(1, 5):
        every = list(combinations(range(bound + 1), 2))
        right = max(
            most_moved(
                graph_of(bound + 1, [e for e, kept in zip(every, mask, strict=True) if kept]),
                of(0),
            )
            for mask in product((False, True), repeat=len(every))
        )
        printed = max(Fraction(bound * (bound - 1), 4), Fraction(bound))
        rows.append([bound, (float(right), 0.0), (float(printed), 0.0)])
    result.table("Δ of betweenness with degrees up to D, all graphs of D + 1 nodes",
                 ["D", "by enumeration", "as printed"], rows)  # fmt: skip
    result.claim(
        DAMPENING, "Lemma 5.2: the global sensitivity of betweenness is max(D(D − 1)/4, D)",
        "it is max((D − 1)(D − 2)/4, D − 1), attained", Verdict.OTHERWISE,
        "a node of degree D cannot gain an edge; the printed value is safe, only larger",
    )  # fmt: skip
    return result


def budgets(setting: Setting) -> Result:  # noqa: ARG001
    result = Result()
    rows = [[k, s, o, k * s + o, k + 1] for k, s, o in ((3, 3, 3), (2, 20, 1), (10, 5, 1))]
    result.table(
        "what Algorithm 1 spends, in multiples of its ε",
        ["generations k", "selected s", "outputs o", "ε a draw", "ε a call"], rows,
    )  # fmt: skip
    result.claim(
        MULTI, "Algorithm 1 (DP-MOET) satisfies ε-differential privacy",
        "it spends (k·s + o)·ε if every draw has ε, (k + 1)·ε if every call has", Verdict.FAILS,
        "sequential composition over generations is left out; dividing ε over all draws mends it",
    )  # fmt: skip
    return result


def distances(setting: Setting) -> Result:  # noqa: ARG001
    result = Result()
    rows: list[list[Cell]] = []
    for rows_of in (2, 5, 10, 100, 1000, 48842):
        right = log2(rows_of) - (rows_of - 1) / rows_of * log2(rows_of - 1) if rows_of > 1 else 0
        printed = (1 / log(2) + log2(rows_of)) / rows_of
        rows.append([rows_of, (right, 0.0), (printed, 0.0), (2 * printed, 0.0)])
    result.table(
        "global sensitivity of entropies of N records, one of which is replaced",
        ["N", "exact, of H and of H(X) − H(X, Y)", "Theorem 5 as printed",
         "Theorems 6 and 7 as printed"], rows,
    )  # fmt: skip
    result.claim(
        DISTANCES, "Theorems 6 and 7: −H(Y|X) has twice the sensitivity of an entropy",
        "it has the same one", Verdict.OTHERWISE,
        "what a replacement takes away and what it adds have opposite signs; the printed value is "
        "safe, and wastes half of ε",
    )  # fmt: skip
    sensitivity = 2 * (1 / log(2) + log2(80)) / 80
    ratio = exp(log2(3) / (2 * sensitivity))
    result.claim(
        DISTANCES, "Example 2: MaxDependency draws contexts with probabilities from 2e-45 to 0.89",
        f"no two can differ by more than a factor of {ratio:.0f} at N = 80 and ε = 1",
        Verdict.FAILS, "with three cities the utilities span at most log 3",
    )  # fmt: skip
    return result


def noise(setting: Setting) -> Result:  # noqa: ARG001
    result = Result()
    rows: list[list[Cell]] = []
    for given, delta in (("0.5", "1e-6"), ("1", "1e-6"), ("2", "1e-6"), ("5", "5e-4")):
        loss, chance = Fraction(given), Fraction(delta)
        beta = largest_beta(int(loss * NANO), int(chance * ATTO))
        rows.append([
            given, delta, (beta, 0.0), (float(loss) / (2 * log(1 / chance)), 0.0),
            (float(loss) / (2 * log(2 / chance)), 0.0),
        ])  # fmt: skip
    result.table("how fast a scale may change: β", ["ε", "δ", "exact", "as printed, ln(1/δ)",
                 "as proved in 2007, ln(2/δ)"], rows)  # fmt: skip
    epsilon, tail = 5.0, log(2000)
    beta = epsilon / (2 * tail)
    smooth = 2 * max(7.5, 10 * exp(-beta)) / epsilon
    right = 2 * max(7.5, 10 * exp(-largest_beta(5 * NANO, ATTO // 2000))) / epsilon
    result.claim(NOISE, "section 5.3: smooth sensitivity gives a scale of 3",
                 f"{smooth:.3g} with β as printed, {right:.3g} with the exact β", Verdict.HOLDS
                 if abs(smooth - 3) < 1e-9 else Verdict.OTHERWISE,
                 "" if abs(smooth - 3) < 1e-9 else "β differs")  # fmt: skip
    step = 1 + epsilon / tail / 2
    scale = 1 / min(1 / 3, 0.25 * step)
    result.claim(NOISE, "section 5.3: LLS gives a scale of 3", f"{scale:.4g}", Verdict.OTHERWISE,
                 "4/3 is above 1 + t/2, so the ratio is what limits the rate")  # fmt: skip
    # Rungs of 7.5 and 10 numbers on either side of the answer.
    law = rung_probabilities(np.array([1, 15, 20]), epsilon)
    result.claim(
        NOISE, "section 5.3: the ladder needs a scale of 6.75",
        f"its answer is the true one with probability {law[0]:.4f}, within 7.5 of it with "
        f"{law[1]:.4f} more", Verdict.FAILS,
        "the ladder has rungs and no scale: 6.75 is one draw, which nobody can repeat",
    )  # fmt: skip
    third = epsilon / 3
    margin = log(3 * 2000) / third
    silent = [(7.5 + 4 * (shared + margin) * margin) / third for shared in (1, 2)]
    result.claim(
        NOISE, "section 5.3: noisy local sensitivity needs a scale of 72",
        f"{silent[0]:.2f} or {silent[1]:.2f} where its noise happens to be zero, by the two values "
        "of a that are printed", Verdict.FAILS,
        "the scale is random, and 72 is none of the formula's values without noise",
    )  # fmt: skip
    complete = list(combinations(range(5), 2))
    graph = graph_of(5, complete[:-1])
    moved = most_moved(graph, two_triangles)
    result.claim(
        NOISE, "two-triangles: (5/2)·a_H bounds the local sensitivity",
        f"of the complete graph of 5 nodes less an edge it is {moved}, and a_H = 3",
        Verdict.FAILS, "the right bound is (5/2)·a_H·(a_H − 1), which is attained here",
    )  # fmt: skip
    found, allowed = divergence(8.0), exp(-16 / 3)
    result.claim(
        NOISE, "Theorem 8: with λ and α as its two conditions ask, the noise is (ε, δ)-private",
        f"two datasets at ε = 8 that meet both: δ = {found:.6f} where {allowed:.6f} is claimed",
        Verdict.FAILS, "the proof bounds the larger rate by the α of the other dataset; it holds "
        "for one constant α",
    )  # fmt: skip
    return result


def divergence(epsilon: float) -> float:
    """∫ max(0, p − e^ε·q) of Laplace laws of rates 1 at 0 and 2 at 8/3."""
    from scipy.integrate import quad

    def excess(x: float) -> float:
        return max(0.0, exp(-abs(x)) / 2 - exp(epsilon - 2 * abs(x - 8 / 3)))

    parts = (-60.0, -20.0, -6.0, -2.0, 0.0, 2.0, 8 / 3, 5.0, 8.0, 12.0, 20.0, 60.0)
    return float(sum(quad(excess, a, b, limit=400, epsabs=1e-12)[0]
                     for a, b in pairwise(parts)))  # fmt: skip


def experiments() -> list[Bench]:
    title = "Worked examples and constants"
    return [
        Bench(f"worked_examples.{name}", title, run, 1.0, paper=paper)
        for name, paper, run in (
            ("selection", DAMPENING, selection),
            ("multi_objective", MULTI, budgets),
            ("distances", DISTANCES, distances),
            ("noise", NOISE, noise),
        )
    ]
