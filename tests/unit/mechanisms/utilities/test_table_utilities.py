"""δ of tables against the literal formulas; grids and refusals from public facts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mechanisms.kernels import impurity, rates
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import PrefixRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.entropy_table import MAX_ROWS
from mechanisms.utilities.gini import Gini
from mechanisms.utilities.information_gain import InformationGain, MutualInformation
from mechanisms.utilities.tables import LARGEST_BOUND, ROWS, row_bound
from mechanisms.utilities.tree_rates import Rate, TruePositiveRate
from mechanisms.utilities.utility import Measurement, finest_bits
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE, nearest_increment

TABLE = {name: u for name, u in UTILITIES.items() if u.candidates != "nodes"}
every_utility = pytest.mark.parametrize("utility", TABLE.values(), ids=TABLE)
every_relation = pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
CANDIDATES: dict[str, Any] = {
    "attributes": Attributes(("sex", "job"), "income"),
    "values": ValuesOf("job"),
    "trees": Trees(({"label": "low"}, {"label": "high"}), "income", "high"),
}
ATTRIBUTES = (
    CategoricalAttribute("sex", ("F", "M")),
    CategoricalAttribute("job", ("a", "b", "c")),
    CategoricalAttribute("income", ("low", "high")),
)


def dataset_of(relation: NeighbouringRelation, rows: int | None) -> Dataset:
    return Dataset("table", relation, TableDomain(ATTRIBUTES, rows=rows, max_rows=rows))


# The formulas of the sensitivity functions, computed over all levels and in rational numbers.


def moved(level: list[int], t: int, replace: bool) -> tuple[int, int]:
    """M and Q of one level after t changes."""
    fewest = min(level)
    m, beta = sum(level) - fewest, max(fewest, 1) - 1
    taken = min(t, beta)
    return (m + t if replace else m + t - taken), beta - taken


def plain_gain(table: list[list[int]], t: int, rows: int, replace: bool, bits: int) -> int:
    cap = max(nearest_increment(rows - 1, bits), 1)
    if t >= rows:
        return cap
    steps = []
    for m, q in (moved(level, t, replace) for level in table):
        ends = nearest_increment(min(m + q, rows - 1), bits), nearest_increment(q, bits)
        steps.append(ends[0] - ends[1] + 2 * t + 1)
    return max(1, min(cap, max(steps)))


def plain_gini(table: list[list[int]], t: int, rows: int, replace: bool, bits: int) -> int:
    cap = max(1, -((-(2 << bits) * (rows - 1)) // rows))
    steps = [
        -((-(2 << bits) * m * m) // ((m + q) * (m + q + 1))) if m else 0
        for m, q in (moved(level, t, replace) for level in table)
    ]
    return max(1, min(cap, max(steps)))


def plain_rate(hits: int, total: int, t: int, replace: bool) -> Fraction:
    if replace:
        return Fraction(1, max(total - t, 1))
    fewer, more = sorted((hits, total - hits))
    if total == 0:
        return Fraction(1, 2)
    if fewer == 0:
        return Fraction(1, max(total - t + 1, 2))
    if t <= fewer - 1:
        return Fraction(more, (total - t) * (total - t - 1))
    return Fraction(1, max(total - t, 2))


tables = st.integers(2, 4).flatmap(
    lambda classes: st.lists(
        st.lists(st.integers(0, 12) | st.integers(0, 3), min_size=classes, max_size=classes),
        min_size=1,
        max_size=5,
    )
)


@every_relation
@pytest.mark.parametrize(
    "utility, plain", [(InformationGain(), plain_gain), (Gini(), plain_gini)], ids=["gain", "gini"]
)
@settings(deadline=None, max_examples=60)
@given(table=tables, room=st.integers(0, 30), bits=st.sampled_from([0, 1, 8, 32]))
def test_delta_follows_its_formula(
    utility: Any, plain: Any, relation: Any, table: list[list[int]], room: int, bits: int
) -> None:
    rows = max(1, sum(map(sum, table)) + room)
    replace = relation is REPLACE
    grid = utility.table_grid(rows).coarser(bits)
    measured = utility.of_tables(
        [np.array(table), np.array(table[::-1])],
        dataset_of(relation, rows),
        Sensitivity.LOCAL,
        grid,
    )
    both = np.arange(2)
    actual = [measured.delta.at(t, both).tolist() for t in range(rows + 2)]
    expected = [plain(table, t, rows, replace, bits) for t in range(rows + 2)]
    # The cap of a coarser grid may be one step larger, because it is rounded up once more.
    assert grid.cap - expected[-1] in (0, 1)
    if grid.cap == expected[-1]:
        assert actual == [[step, step] for step in expected]
    short = sum(grid.cap - step[0] for step in actual[:rows])
    assert measured.delta.shortfall().tolist() == [short, short]
    assert [measured.delta.largest(t) for t in range(rows)] == [s[0] for s in actual[:rows]]


@every_relation
def test_long_sums_are_exact(relation: NeighbouringRelation) -> None:
    """Sums up to T where every part of them is in use, against adding up one by one."""
    rows = 3000
    listed = [
        [[700, 600], [40, 900]],
        [[1500, 1500], [0, 0]],
        [[0, 5], [2, 2]],
        [[0, 0], [0, 0]],
        [[3000, 0], [0, 0]],
        [[500, 499], [300, 20]],
    ]
    everyone = np.arange(len(listed))
    for utility in (InformationGain(), Gini()):
        grid = utility.table_grid(rows)
        measured = utility.of_tables(
            [np.array(table) for table in listed],
            dataset_of(relation, rows),
            Sensitivity.SHIFTED,
            grid,
        )
        short = sum(grid.cap - measured.delta.at(t, everyone) for t in range(rows))
        assert measured.delta.shortfall().tolist() == short.tolist()
    hits, totals = np.array([0, 3, 700, 1400, 1500, 2999, 0]), np.array([0, 3, 2000] + [3000] * 4)
    grid = UTILITIES["true_positive_rate"].grid(
        dataset_of(relation, rows), CANDIDATES["trees"], Sensitivity.SHIFTED
    )
    rates = TruePositiveRate().of_counts(
        hits, totals, dataset_of(relation, rows), Sensitivity.SHIFTED, grid
    )
    everyone = np.arange(hits.size)
    short = sum(grid.cap - rates.delta.at(t, everyone) for t in range(grid.horizon))
    assert rates.delta.shortfall().tolist() == short.tolist()


@settings(max_examples=300)
@given(m=st.integers(0, 2**29), q=st.integers(0, 2**29 - 1), bits=st.integers(0, 32))
@example(m=2**29, q=0, bits=32)
@example(m=1, q=2**29 - 1, bits=32)
def test_gini_steps_are_exact_for_any_count(m: int, q: int, bits: int) -> None:
    exact = -((-(2 << bits) * m * m) // max((m + q) * (m + q + 1), 1))
    assert impurity.gini_step(m, q, bits) == exact


@every_relation
@settings(deadline=None, max_examples=200)
@given(
    total=st.integers(0, 60) | st.integers(0, 10**7),
    share=st.fractions(0, 1),
    t=st.integers(0, 70) | st.integers(0, 10**7),
    bits=st.sampled_from([1, 5, 32]),
)
def test_rates_follow_their_formula(
    relation: NeighbouringRelation, total: int, share: Fraction, t: int, bits: int
) -> None:
    hits, replace = int(share * total), relation is REPLACE
    cap = 1 << bits if replace else 1 << bits - 1
    exact = plain_rate(hits, total, t, replace) * 2**bits
    step = rates.step(hits, total, bits, replace, cap, t)
    assert step == max(1, -(-exact.numerator // exact.denominator))


@settings(deadline=None, max_examples=100)
@given(
    unit=st.integers(1, 10**6), first=st.integers(2, 400), count=st.integers(0, 400),
    cap=st.integers(1, 10**5),
)  # fmt: skip
def test_sums_by_runs_are_sums(unit: int, first: int, count: int, cap: int) -> None:
    last = first + count - 1
    k = range(first, last + 1)
    # The sensitivity δ of Gini rises up to its cap. The sum is what δ lacks to the cap, so terms at
    # the cap add nothing.
    rising = min(cap, unit)
    missing = sum(max(rising - (unit - unit // i), 0) for i in k)
    assert impurity.harmonic_sum(unit, first, last, rising) == missing


def test_pairs_without_a_better_one_are_kept() -> None:
    table = np.array([[5, 9], [1, 9], [3, 20], [0, 9], [0, 4], [9, 30], [0, 0]])
    pairs = RarestPairs.of([table, np.zeros((1, 3), dtype=np.int64)])
    # The levels of the first table have these pairs (m, β): (9, 4) (9, 0) (20, 2) (9, 0) (4, 0)
    # (30, 8) (0, 0). β is one less than the records of a level's rarest class, at least 0, and m
    # counts its other records.
    assert pairs.offsets.tolist() == [0, 3, 4]
    remaining = list(zip(pairs.others.tolist(), pairs.rarest.tolist(), strict=True))
    assert remaining == [(30, 8), (20, 2), (9, 0), (0, 0)]
    merged = pairs.merged()
    assert merged.offsets.tolist() == [0, 3]
    assert merged.others.tolist() == [30, 20, 9]


# The public facts that utilities state.


def test_mutual_information_is_information_gain() -> None:
    """Both have one implementation; only names and descriptions differ."""
    # Python creates ``__annotations__`` of a class when it is first read, and ``_abc_impl`` for
    # every abstract base class. So both are ignored.
    words = {"__module__", "__doc__", "__annotations__", "__abstractmethods__", "_abc_impl"}
    own = set(vars(MutualInformation)) - words
    assert own == {"name", "title", "description", "source"}


@every_utility
@every_relation
def test_grids_keep_all_sums_in_64_bits(utility: Any, relation: NeighbouringRelation) -> None:
    for sensitivity, rows in product(Sensitivity, (1, 2, 3, 10, 48_842, 10**7, MAX_ROWS)):
        case = sensitivity, rows
        grid = utility.grid(dataset_of(relation, rows), CANDIDATES[utility.candidates], sensitivity)
        assert min(grid.cap, grid.horizon) >= 1, case
        assert max(grid.cap * grid.horizon, grid.largest, rows << grid.bits) < 2**62, case
        if utility.name not in ("max", "count", "true_positives", "true_negatives"):
            assert grid.bits == 32, case
            assert 2**grid.bits >= 100 * rows, case


def test_rates_of_very_many_rows_have_finer_grids() -> None:
    dataset = dataset_of(ADD_REMOVE, 2**28)
    grid = UTILITIES["true_negative_rate"].grid(dataset, CANDIDATES["trees"], Sensitivity.LOCAL)
    assert 2**grid.bits >= 32 * 2**28
    assert 2**28 << grid.bits < 2**62


def test_rows_are_bounded_in_public() -> None:
    for relation in (ADD_REMOVE, REPLACE):
        assert row_bound(dataset_of(relation, 0)) == 1
        with pytest.raises(UnsupportedQuery, match="rows"):
            row_bound(dataset_of(relation, LARGEST_BOUND + 1))
        with pytest.raises(UnsupportedQuery, match="fixed"):
            row_bound(dataset_of(relation, None))
    with pytest.raises(UnsupportedQuery, match="relation"):
        row_bound(dataset_of(NeighbouringRelation.PREFIX, 5))
    with pytest.raises(UnsupportedQuery, match="tables"):
        row_bound(Dataset("graph", NeighbouringRelation.EDGE, GraphDomain(3, 2)))
    with pytest.raises(UnsupportedQuery, match="arithmetic"):
        finest_bits(2**61, 32, ROWS)
    with pytest.raises(UnsupportedQuery, match="rows"):
        UTILITIES["information_gain"].grid(
            dataset_of(ADD_REMOVE, MAX_ROWS + 1), CANDIDATES["attributes"], Sensitivity.LOCAL
        )


@every_utility
def test_candidates_of_another_kind_are_refused(utility: Any) -> None:
    for kind, candidates in (*CANDIDATES.items(), ("nodes", AllNodes())):
        if kind != utility.candidates:
            with pytest.raises(UnsupportedQuery):
                utility.grid(dataset_of(ADD_REMOVE, 10), candidates, Sensitivity.LOCAL)


@every_utility
def test_records_of_another_kind_are_a_mistake(utility: Any) -> None:
    dataset, candidates = dataset_of(ADD_REMOVE, 10), CANDIDATES[utility.candidates]
    grid = utility.grid(dataset, candidates, Sensitivity.LOCAL)
    with pytest.raises(TypeError):
        utility.measure(PrefixRecords(3), dataset, candidates, Sensitivity.LOCAL, grid)


def test_a_rate_says_what_it_counts() -> None:
    with pytest.raises(TypeError, match="counted"):
        Rate()  # type: ignore[abstract]


# Test vectors: values that the specification of the utilities states.


def units(measured: Measurement, grid_bits: int, distances: tuple[int, ...]) -> list[float]:
    return [int(measured.delta.at(t, np.zeros(1, int))[0]) / 2**grid_bits for t in distances]


@pytest.mark.parametrize(
    "relation, rows, table, utility, distances, delta",
    [
        (ADD_REMOVE, 10, [[3, 1], [0, 2]], -3.245112498, (0, 1, 2, 5),
         [3.245112498, 3.609640474, 3.900134530, 4.529325013]),
        (REPLACE, 6, [[3, 1], [0, 2]], -3.245112498, (0, 1, 2),
         [3.245112498, 3.609640474, 3.900134530]),
        (ADD_REMOVE, 20, [[5, 5]], -10, (0, 1, 2, 5),
         [1.080315461, 1.284212515, 1.593628043, 4.141709450]),
        (ADD_REMOVE, 10, [[0, 0], [0, 0]], 0, (0, 1, 2, 5),
         [0, 2, 2.754887502, 3.900134530]),
        (ADD_REMOVE, 1000, [[40, 10, 6], [3, 3, 90]], -101.985542282, (0, 1, 2, 5),
         [5.265229776, 6.004930734, 7.989582625, 8.035145623]),
    ],
)  # fmt: skip
def test_vectors_of_information_gain(
    relation: NeighbouringRelation,
    rows: int,
    table: Any,
    utility: float,
    distances: Any,
    delta: Any,
) -> None:
    gain = InformationGain()
    grid = gain.table_grid(rows)
    if rows == 10:
        assert grid.cap / 2**32 == pytest.approx(4.689955936, abs=1e-9)
    measured = gain.of_tables(
        [np.array(table)], dataset_of(relation, rows), Sensitivity.LOCAL, grid
    )
    assert measured.utilities[0] / 2**32 == pytest.approx(utility, abs=1e-8)
    assert units(measured, 32, distances) == pytest.approx(delta, abs=5e-9)


@pytest.mark.parametrize(
    "rows, table, utility, delta",
    [
        (10, [[3, 1], [0, 2]], Fraction(-3, 2), [Fraction(3, 2), Fraction(8, 5), Fraction(5, 3)]),
        (20, [[5, 5]], Fraction(-5), [Fraction(5, 9), Fraction(25, 36), Fraction(25, 28)]),
    ],
)
def test_vectors_of_gini(rows: int, table: Any, utility: Fraction, delta: Any) -> None:
    grid = Gini().table_grid(rows)
    measured = Gini().of_tables(
        [np.array(table)], dataset_of(ADD_REMOVE, rows), Sensitivity.LOCAL, grid
    )
    assert measured.utilities[0] == utility * 2**32
    steps = [int(measured.delta.at(t, np.zeros(1, int))[0]) for t in range(3)]
    assert steps == [-(-(d.numerator << 32) // d.denominator) for d in delta]


def thirds(*denominators: int) -> list[Fraction]:
    return [Fraction(1, k) for k in denominators]


@pytest.mark.parametrize(
    "relation, hits, total, delta",
    [
        (ADD_REMOVE, 0, 0, thirds(2, 2, 2, 2, 2)),
        (ADD_REMOVE, 2, 2, thirds(3, 2, 2, 2, 2)),
        (ADD_REMOVE, 1, 3, thirds(3, 2, 2, 2, 2)),
        (ADD_REMOVE, 2, 3, thirds(3, 2, 2, 2, 2)),
        (ADD_REMOVE, 3, 5, [Fraction(3, 20), *thirds(4, 3, 2, 2)]),
        (ADD_REMOVE, 0, 4, thirds(5, 4, 3, 2, 2)),
        (ADD_REMOVE, 50, 100,
         [Fraction(1, 198), Fraction(25, 4851), Fraction(25, 4753), Fraction(25, 4656),
          Fraction(5, 912)]),
        (ADD_REMOVE, 100, 100, thirds(101, 100, 99, 98, 97)),
        (REPLACE, 2, 5, thirds(5, 4, 3, 2, 1)),
    ],
)  # fmt: skip
def test_vectors_of_rates(
    relation: NeighbouringRelation, hits: int, total: int, delta: list[Fraction]
) -> None:
    dataset = dataset_of(relation, 100)
    grid = UTILITIES["true_positive_rate"].grid(dataset, CANDIDATES["trees"], Sensitivity.LOCAL)
    measured = TruePositiveRate().of_counts(
        np.array([hits]), np.array([total]), dataset, Sensitivity.LOCAL, grid
    )
    steps = [int(measured.delta.at(t, np.zeros(1, int))[0]) for t in range(5)]
    assert steps == [-(-(d.numerator << grid.bits) // d.denominator) for d in delta]
    assert [plain_rate(hits, total, t, relation is REPLACE) for t in range(5)] == delta
