"""How fast private trees are, beside scikit-learn and vectorised NumPy in the same rounds.

1. ID3 of depth 5 on 10⁶ × 14 rows against scikit-learn on the same integer codes at depth 5: the
   tree grower of its boosting, which counts codes of one byte as ID3 does, and
   DecisionTreeClassifier. All on one thread.
2. 100 trees of depth 5 over 48,842 rows against a NumPy evaluation that answers every test of every
   tree for all rows.
3. On 10⁷ × 14 rows, two threads: ID3 of depth 5 by every criterion and sensitivity, the
   evolutionary search (100 trees, 20 selected, 2 generations), and scores of 56 given trees by a
   weighted sum of both rates. The memory is that of the whole process, records included.
Seconds of a processor are judged, all threads together: on cores that others use as well, clocks
tell how busy they are.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.service.warm import warm
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.data.tables import Table, coded
from benchmarks.result import Result, timed
from benchmarks.rounds import Rounds, memory, processor, wall
from benchmarks.trees.tables import grown
from mechanisms.kernels.forests import confusion
from mechanisms.model.context import QueryContext
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.table_candidates import Trees
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import score_bits
from mechanisms.objectives import Term, WeightedSum
from mechanisms.selection import SELECTORS
from mechanisms.selection.dampening import scores
from mechanisms.trees.dice import Dice
from mechanisms.trees.evolutionary import Search, search
from mechanisms.trees.evolutionary.fitness import SENSITIVITIES, Fitness
from mechanisms.trees.evolutionary.proposals import Proposals, Tree
from mechanisms.trees.evolutionary.questions import Questions
from mechanisms.trees.evolutionary.tree_forms import flattened
from mechanisms.trees.id3.split_rule import CRITERIA
from mechanisms.utilities import UTILITIES

LEVELS = (2, 3, 5, 8, 10, 16, 16, 4, 6, 7, 9, 12, 2, 2)
WEIGHTS = {"true_positive_rate": Decimal(3), "true_negative_rate": Decimal(2)}
SKLEARN, GROWER = "scikit-learn", "scikit-learn's binned grower"
RATIOS = {name: f"ID3 on one thread / {name}" for name in (SKLEARN, GROWER)}


def made_up(rows: int) -> Table:
    """14 attributes; the class follows three of them with noise, so that nodes go on splitting."""
    generator = np.random.default_rng(1)
    levels = {f"x{i}": count for i, count in enumerate(LEVELS)}
    codes: dict[str, NDArray[Any]] = {
        name: generator.integers(0, count, rows, dtype=np.uint8) for name, count in levels.items()
    }
    rule = (codes["x0"] ^ (codes["x3"] > 4) ^ (codes["x8"] > 1)).astype(np.uint8)
    codes["class"] = rule ^ (generator.random(rows) < 0.2)
    return coded("made up", codes, levels | {"class": 2})


def learned(
    table: Table, executor: Executor, criterion: str = "gini", sensitivity: str = "global"
) -> Any:
    how = 5, criterion, sensitivity, 1.0, SystemRandomness(), executor
    return grown(table, table.records, *how)


def by_numpy(trees: list[Tree], columns: list[NDArray[Any]], actual: NDArray[np.bool_]) -> Any:
    """TP and TN of every tree: each test answered for all rows, then chosen by ``where``."""
    counts = []
    for tree in trees:
        predicted = np.broadcast_to(_predicted(tree, columns), actual.shape)
        counts.append((int((predicted & actual).sum()), int((~predicted & ~actual).sum())))
    return counts


def _predicted(tree: Tree, columns: list[NDArray[Any]]) -> NDArray[np.bool_]:
    if isinstance(tree, bool):
        return np.array(tree)
    (attribute, place), yes, no = tree
    equal = columns[attribute] == place
    return np.where(equal, _predicted(yes, columns), _predicted(no, columns))


def grower(codes: NDArray[np.uint8], classes: NDArray[Any], levels: NDArray[np.uint32]) -> object:
    """One tree of depth 5 by scikit-learn's histograms, grown from squared errors."""
    from sklearn.ensemble._hist_gradient_boosting.grower import TreeGrower

    gradients = (classes.mean() - classes).astype(np.float32)
    tree = TreeGrower(
        codes, gradients, np.ones(1, np.float32), max_depth=5, min_samples_leaf=1, n_threads=1,
        n_bins_non_missing=levels,
    )  # fmt: skip
    tree.grow()
    return tree


def against_scikit(result: Result, setting: Setting, executor: Executor) -> None:
    from sklearn.tree import DecisionTreeClassifier

    table = made_up(setting.size(1_000_000, 100_000))
    matrix = np.column_stack([table.records.codes[a.name] for a in table.attributes])
    binned, levels = np.asfortranarray(matrix), np.array(LEVELS, np.uint32)
    ways = {
        SKLEARN: processor(lambda: DecisionTreeClassifier(max_depth=5).fit(matrix, table.classes)),
        GROWER: processor(lambda: grower(binned, table.classes, levels)),
        "ID3, one thread": processor(lambda: learned(table, Inline())),
        "ID3, two threads": processor(lambda: learned(table, executor)),
    }
    rounds = Rounds.of("seconds of a processor", ways, setting.times(5))
    rounds.report(result, f"ID3, {table.rows:,} × 14, depth 5")
    for rival, name in RATIOS.items():
        result.measure(name, rounds.ratio("ID3, one thread", rival), "×")


def population(result: Result, setting: Setting, executor: Executor) -> None:
    table = made_up(48_842)
    records, questions = table.records, Questions(table.task)
    proposals = Proposals(questions, 5, 5, Dice(SystemRandomness()))
    trees = [proposals.random() for _ in range(100)]
    forest = flattened(trees, questions, 1)
    columns = [records.codes[a.name] for a in table.attributes]
    actual = table.classes == 1
    ours = confusion(records, forest)
    counts = list(zip(ours.true_positives.tolist(), ours.true_negatives.tolist(), strict=True))
    if counts != by_numpy(trees, columns, actual):
        raise AssertionError("NumPy counts other rows")
    ways = {
        "NumPy": wall(lambda: by_numpy(trees, columns, actual)),
        "one thread": wall(lambda: confusion(records, forest)),
        "two threads": wall(lambda: confusion(records, forest, executor)),
    }
    rounds = Rounds.of("seconds", ways, setting.times(15))
    rounds.report(result, "100 trees of depth 5, 48,842 rows")
    for threads in ("one thread", "two threads"):
        result.measure(f"100 trees: NumPy / {threads}", rounds.ratio("NumPy", threads), "×")


def largest(result: Result, setting: Setting, executor: Executor) -> None:
    table = made_up(setting.size(10_000_000, 200_000))
    works: dict[str, Callable[[], object]] = {}
    for criterion, s in product(CRITERIA, Sensitivity):
        works[f"ID3, 10⁷ rows, {criterion}, {s}"] = partial(learned, table, executor, criterion, s)
    for objective, s in product(("weighted_sum", "pareto"), SENSITIVITIES):
        plan = Search(
            task=table.task,
            fitness=Fitness(objective, WEIGHTS, s),  # type: ignore[arg-type]
            selector=SELECTORS["permute_and_flip"],
            positive_class="1",
            population=100,
            generations=2,
            selected=20,
            outputs=1,
            initial_depth=3,
            max_depth=5,
        )
        loss, randomness = PrivacyLoss(10**9), SystemRandomness()
        context = QueryContext(table.records, table.dataset, loss, randomness, executor)
        works[f"search, 10⁷ rows, {objective}, {s}"] = partial(search, context, plan)
    for s in Sensitivity:
        works[f"scores of 56 trees, 10⁷ rows, {s}"] = partial(rated, table, given_trees(), s)
    for name, work in works.items():
        result.measure(name, processor(work)(), "s")
    result.table("10⁷ × 14 rows: seconds of a processor", ["work", "s"],
                 [[name, timed(result.measured[name].value)] for name in works])  # fmt: skip
    result.measure("peak memory", memory("VmHWM"), "MiB")


def given_trees() -> Trees:
    """Four trees of one test an attribute, two of them with the labels exchanged."""
    trees = [
        {
            "attribute": f"x{i}",
            "value": value,
            "equal": {"label": label},
            "other": {"label": "10"[int(label)]},
        }
        for i, value, label in product(range(len(LEVELS)), "01", "01")
    ]
    return Trees(tuple(trees), "class", "1")


def rated(table: Table, trees: Trees, sensitivity: Sensitivity) -> Any:
    """The scores of the trees by a weighted sum of both rates."""
    both = WeightedSum([Term(UTILITIES[name], weight) for name, weight in WEIGHTS.items()])
    grid = both.grid(table.dataset, trees, sensitivity)
    measured = both.measure(table.records, table.dataset, trees, sensitivity, grid)
    return scores(measured, grid, sensitivity, score_bits(1), both.direction)


def run(result: Result, setting: Setting) -> None:
    warm()
    executor = ThreadExecutor(2)
    # The largest case comes first, because the peak of memory is that of the whole process so far.
    largest(result, setting, executor)
    against_scikit(result, setting, executor)
    population(result, setting, executor)
    executor.close()


BENCHES = (
    Bench(
        "tree_speed",
        "How fast are private trees, and how much memory do they take?",
        run,
        240.0,
        (GROWER, "scikit-learn's DecisionTreeClassifier", "vectorised NumPy"),
        (
            Bar(RATIOS[SKLEARN], most=0.25),
            Bar(RATIOS[GROWER], most=1.3),
            Bar("100 trees: NumPy / one thread", least=2),
            Bar("100 trees: NumPy / two threads", least=3),
            Bar("ID3, 10⁷ rows, *", most=10),
            Bar("search, 10⁷ rows, *", most=30),
            Bar("scores of 56 trees, 10⁷ rows, *", most=30),
            Bar("peak memory", most=1024),
        ),
    ),
)
