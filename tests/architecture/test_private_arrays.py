"""Library calls whose time follows the values of an array, and where they may stand.

A library sort of 100,000 equal numbers takes a tenth of the time of one that has two of them
changed. So no answer sorts private arrays by a library, or shrinks them to those that meet a
condition. ``mechanisms.kernels.radix`` sorts in equal work.
"""

from __future__ import annotations

import ast

from tests.architecture.imports import ROOT

FORBIDDEN = frozenset(
    {"argsort", "sort", "lexsort", "unique", "flatnonzero", "nonzero", "argwhere", "partition"}
    | {"argpartition", "sort_complex", "median", "compress", "extract", "isin", "in1d"}
)
#: The library calls that are allowed: the file and the called name, with the reason why the call
#: may be there.
ALLOWED = {
    ("kernels/graphs/co_degree.py", "argsort"): "preparation of an upload",
    ("kernels/graphs/graph.py", "argsort"): "preparation of an upload",
    ("kernels/graphs/graph.py", "flatnonzero"): "preparation of an upload",
    ("kernels/graphs/graph.py", "sort"): "preparation of an upload",
    ("kernels/graphs/pairs_of_nodes.py", "argsort"): "preparation of an upload",
    ("kernels/graphs/ranks.py", "unique"): "preparation of an upload",
    ("kernels/graphs/totals.py", "argsort"): "preparation of an upload",
    ("kernels/graphs/totals.py", "flatnonzero"): "preparation of an upload",
    ("clustering/encoding.py", "median"): "over public encodings",
    ("distances/context_scores.py", "flatnonzero"): "the pairs that decide; N of them at most",
    ("noise/order.py", "argsort"): "the k noisy values that are released",
    ("noise/subset.py", "sort"): "the set that is released",
    ("noise/subset.py", "flatnonzero"): "coins whose brackets need more bits: almost never any",
    ("noise/race.py", "argsort"): "contenders: k, and others with probability n times 2^-40",
    ("noise/race.py", "flatnonzero"): "contenders: k, and others with probability n times 2^-40",
    ("statistics/predicate.py", "sort"): "the values of the request",
    ("statistics/prefix_sum.py", "unique"): "a public list",
    ("trees/id3/stop_rule.py", "sort"): "released counts",
    ("utilities/entropy_table.py", "flatnonzero"): "a public table",
}


def calls() -> set[tuple[str, str]]:
    """File and name of every forbidden call by attribute in ``mechanisms``."""
    package, places = ROOT / "mechanisms", set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN:
                places.add((path.relative_to(package).as_posix(), node.attr))
    return places


def test_private_arrays_are_not_sorted_by_a_library() -> None:
    assert calls() - set(ALLOWED) == set()


def test_every_exception_is_needed() -> None:
    assert set(ALLOWED) - calls() == set()
