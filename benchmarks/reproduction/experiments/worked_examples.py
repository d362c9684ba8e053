"""The worked examples and constants of the papers, by definition and by enumeration; all exact."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise
from math import exp, log, log2

import numpy as np

from accounting.privacy_loss import ATTO, NANO
from benchmarks.bench import Bench, Setting
from benchmarks.reproduction.papers import DAMPENING, DISTANCES, MULTI, NOISE
from benchmarks.result import FAILS, HOLDS, OTHERWISE, Cell, Result
from mechanisms.statistics.release.ladder import rung_probabilities
from mechanisms.statistics.smoothness import largest_beta
from tests.evidence.certification.graphs import (
    Graph,
    all_graphs,
    egocentric_betweenness,
    flipped,
    graph_of,
)

#: The example graph of the paper, with two hubs a and b and six other nodes.
NAMES = ("a", "b", "v0", "v1", "v2", "v3", "v4", "v5")
EDGES = ("a-b", "a-v0", "a-v1", "a-v2", "a-v3", "b-v2", "b-v3", "b-v4", "b-v5", "v0-v1", "v4-v5")


def two_triangles(graph: Graph) -> Fraction:
    shared = ((graph[a] & graph[b]).bit_count() for a, b in combinations(range(len(graph)), 2)
              if graph[a] >> b & 1)  # fmt: skip
    return Fraction(sum(c * (c - 1) // 2 for c in shared))


def most_moved(graph: Graph, value: Callable[[Graph], Fraction]) -> Fraction:
    """LS at distance 0: over all flips of one edge."""
    here = value(graph)
    pairs = combinations(range(len(graph)), 2)
    return max(abs(value(flipped(graph, a, b)) - here) for a, b in pairs)


def moved_betweenness(graph: Graph, v: int) -> Fraction:
    return most_moved(graph, partial(egocentric_betweenness, v=v))


def selection(result: Result, setting: Setting) -> None:  # noqa: ARG001 - exact, without data
    edges = [[NAMES.index(end) for end in edge.split("-")] for edge in EDGES]
    graph, nodes = graph_of(len(NAMES), [(a, b) for a, b in edges]), range(len(NAMES))
    near = [graph, *(flipped(graph, a, b) for a, b in combinations(nodes, 2))]
    now = [moved_betweenness(graph, v) for v in nodes]
    after = [max(moved_betweenness(g, v) for g in near) for v in nodes]
    values = [egocentric_betweenness(graph, v) for v in nodes]
    result.table(
        "the example graph: betweenness and local sensitivity, by enumeration",
        ["node", "betweenness", "LS at distance 0", "LS at distance 1"],
        [[name, *map(float, row)] for name, *row in zip(NAMES, values, now, after, strict=True)],
    )
    result.claim(
        "Example 4.2: the local sensitivity of v2 and v3 is 2",
        f"{now[4]} and {now[5]}", FAILS, "no edge moves their betweenness by more than one",
    )  # fmt: skip
    dampened = -Fraction(1, 2) / now[0]
    result.claim(
        "Example 4.2: after the shift by −7, D(a) = 0.1",
        f"u = 13/2 − 7 = −1/2, δ(a, 0) = {now[0]}, so D(a) = {dampened}", FAILS,
        "dampening keeps the sign of the utility; an error of arithmetic",
    )  # fmt: skip
    weights = [exp(float(dampened))] * 2 + [exp(-2.0)] * 6
    result.claim(
        "Example 4.2: the hubs are drawn with probability 0.472, the others with 0.0046",
        f"{weights[0] / sum(weights):.3f} and {weights[-1] / sum(weights):.3f} at ε = 2", OTHERWISE,
        "follows from the wrong D(a)",
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for bound in range(1, 5):
        right = max(moved_betweenness(graph, 0) for graph in all_graphs(bound + 1, bound))
        printed = max(Fraction(bound * (bound - 1), 4), Fraction(bound))
        rows.append([bound, float(right), float(printed)])
    result.table("Δ of betweenness with degrees up to D, all graphs of D + 1 nodes",
                 ["D", "by enumeration", "as printed"], rows)  # fmt: skip
    result.claim(
        "Lemma 5.2: the global sensitivity of betweenness is max(D(D − 1)/4, D)",
        "it is max((D − 1)(D − 2)/4, D − 1), attained", OTHERWISE,
        "a node of degree D cannot gain an edge; the printed value is safe, only larger",
    )  # fmt: skip


def budgets(result: Result, setting: Setting) -> None:  # noqa: ARG001
    rows = [[k, s, o, k * s + o, k + 1] for k, s, o in ((3, 3, 3), (2, 20, 1), (10, 5, 1))]
    result.table(
        "what Algorithm 1 spends, in multiples of its ε",
        ["generations k", "selected s", "outputs o", "ε a draw", "ε a call"],
        rows,
    )
    result.claim(
        "Algorithm 1 (DP-MOET) satisfies ε-differential privacy",
        "it spends (k·s + o)·ε if every draw has ε, (k + 1)·ε if every call has", FAILS,
        "sequential composition over generations is left out; dividing ε over all draws mends it",
    )  # fmt: skip


def distances(result: Result, setting: Setting) -> None:  # noqa: ARG001
    rows: list[list[Cell]] = []
    for n in (2, 5, 10, 100, 1000, 48842):
        printed = (1 / log(2) + log2(n)) / n
        rows.append([n, log2(n) - (n - 1) / n * log2(n - 1), printed, 2 * printed])
    result.table(
        "global sensitivity of entropies of N records, one of which is replaced",
        ["N", "exact, of H and of H(X) − H(X, Y)", "Theorem 5 as printed",
         "Theorems 6 and 7 as printed"], rows,
    )  # fmt: skip
    result.claim(
        "Theorems 6 and 7: −H(Y|X) has twice the sensitivity of an entropy",
        "it has the same one", OTHERWISE,
        "what a replacement takes away and what it adds have opposite signs; the printed value is "
        "safe, and wastes half of ε",
    )  # fmt: skip
    sensitivity = 2 * (1 / log(2) + log2(80)) / 80
    ratio = exp(log2(3) / (2 * sensitivity))
    result.claim(
        "Example 2: MaxDependency draws contexts with probabilities from 2e-45 to 0.89",
        f"no two can differ by more than a factor of {ratio:.0f} at N = 80 and ε = 1", FAILS,
        "with three cities the utilities span at most log 3",
    )  # fmt: skip


def noise(result: Result, setting: Setting) -> None:  # noqa: ARG001
    rows: list[list[Cell]] = []
    for epsilon, delta in (("0.5", "1e-6"), ("1", "1e-6"), ("2", "1e-6"), ("5", "5e-4")):
        loss, chance = Fraction(epsilon), Fraction(delta)
        beta = largest_beta(int(loss * NANO), int(chance * ATTO))
        formulas = [float(loss) / (2 * log(times / chance)) for times in (1, 2)]
        rows.append([epsilon, delta, beta, *formulas])
    result.table("how fast a scale may change: β", ["ε", "δ", "exact", "as printed, ln(1/δ)",
                 "as proved in 2007, ln(2/δ)"], rows)  # fmt: skip
    judge_scales(result)
    moved = most_moved(graph_of(5, list(combinations(range(5), 2))[:-1]), two_triangles)
    result.claim(
        "two-triangles: (5/2)·a_H bounds the local sensitivity",
        f"of the complete graph of 5 nodes less an edge it is {moved}, and a_H = 3", FAILS,
        "the right bound is (5/2)·a_H·(a_H − 1), which is attained here",
    )  # fmt: skip
    result.claim(
        "Theorem 8: with λ and α as its two conditions ask, the noise is (ε, δ)-private",
        f"two datasets at ε = 8 that meet both: δ = {divergence(8.0):.6f} where {exp(-16 / 3):.6f} "
        "is claimed", FAILS,
        "the proof bounds the larger rate by the α of the other dataset; it holds for one constant "
        "α",
    )  # fmt: skip


def judge_scales(result: Result) -> None:
    """The example of section 5.3, at ε = 5 and δ = 1/2000."""
    epsilon, tail = 5.0, log(2000)
    betas = epsilon / (2 * tail), largest_beta(5 * NANO, ATTO // 2000)
    smooth, right = (2 * max(7.5, 10 * exp(-beta)) / epsilon for beta in betas)
    result.claim(
        "section 5.3: smooth sensitivity gives a scale of 3",
        f"{smooth:.3g} with β as printed, {right:.3g} with the exact β",
        HOLDS if abs(smooth - 3) < 1e-9 else OTHERWISE, "β differs",
    )  # fmt: skip
    result.claim(
        "section 5.3: LLS gives a scale of 3",
        f"{1 / min(1 / 3, 0.25 * (1 + epsilon / tail / 2)):.4g}", OTHERWISE,
        "4/3 is above 1 + t/2, so the ratio is what limits the rate",
    )  # fmt: skip
    # In the paper's example the rungs of the ladder have 7.5 and 10 numbers on either side of the
    # true answer.
    law = rung_probabilities(np.array([1, 15, 20]), epsilon)
    result.claim(
        "section 5.3: the ladder needs a scale of 6.75",
        f"its answer is the true one with probability {law[0]:.4f}, within 7.5 of it with "
        f"{law[1]:.4f} more", FAILS,
        "the ladder has rungs and no scale: 6.75 is one draw, which nobody can repeat",
    )  # fmt: skip
    third = epsilon / 3
    margin = log(3 * 2000) / third
    silent = [(7.5 + 4 * (shared + margin) * margin) / third for shared in (1, 2)]
    result.claim(
        "section 5.3: noisy local sensitivity needs a scale of 72",
        f"{silent[0]:.2f} or {silent[1]:.2f} where its noise happens to be zero, by the two values "
        "of a that are printed", FAILS,
        "the scale is random, and 72 is none of the formula's values without noise",
    )  # fmt: skip


def divergence(epsilon: float) -> float:
    """∫ max(0, p − e^ε·q) of Laplace laws of rates 1 at 0 and 2 at 8/3."""
    from scipy.integrate import quad

    def excess(x: float) -> float:
        return max(0.0, exp(-abs(x)) / 2 - exp(epsilon - 2 * abs(x - 8 / 3)))

    parts = (-60.0, -20.0, -6.0, -2.0, 0.0, 2.0, 8 / 3, 5.0, 8.0, 12.0, 20.0, 60.0)
    return float(sum(quad(excess, a, b, limit=400, epsabs=1e-12)[0]
                     for a, b in pairwise(parts)))  # fmt: skip


BENCHES = tuple(
    Bench(f"worked_examples.{name}", "Worked examples and constants", run, 1.0, paper=paper)
    for name, paper, run in (
        ("selection", DAMPENING, selection),
        ("multi_objective", MULTI, budgets),
        ("distances", DISTANCES, distances),
        ("noise", NOISE, noise),
    )
)
