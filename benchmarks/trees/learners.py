"""Which of id3, forest and naive Bayes predicts best, and which one the quote expects to.

Random nine tenths of each table to learn from and the rest held out, the same for all three
learners, as served with their defaults. A point is a table at one ε. The rule of the quote is right
at a point where its learner is within one point of accuracy of the best of the three, by means.
The forest of diffprivlib learns from the same rows (``rival_forest`` names its faults).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting, rows_of
from benchmarks.data.tables import Table
from benchmarks.result import Cell, Result, mean
from benchmarks.simulation import randomness
from benchmarks.trees.rival_forest import predictions
from benchmarks.trees.tables import accuracy, grown, tree_table
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Attribute
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.trees.expectation import default_trees, expected_best
from mechanisms.trees.forest import RandomSplits, random_forest
from mechanisms.trees.naive_bayes import Model, class_counts, learn
from mechanisms.trees.task import Task

TABLES = ("nltcs", "acs", "adult", "mushroom", "cmc")
EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0)
#: Tables, each with an ε at which a forest or naive Bayes is far more accurate than id3.
SMALL = (("nltcs", 0.01), ("adult", 0.025))
DEPTH, RUNS = 5, 150
#: The learner that a quote expects to be best may be so many points of accuracy below the best one.
NEAR = 1.0

Rows = NDArray[Any]
Split = tuple[TableRecords, TableRecords]


def id3(table: Table, split: Split, epsilon: float) -> float:
    rest, held_out = split
    tree = grown(table, rest, DEPTH, "gini", "global", epsilon, randomness(), Inline())
    return accuracy(tree, held_out, table.task)


def forest(table: Table, split: Split, epsilon: float) -> float:
    rest, held_out = split
    context = _context(table, rest, epsilon)
    number = default_trees(table.dataset, context.loss)
    trees = random_forest(context, RandomSplits(table.task, number, DEPTH))
    votes = np.sum([_probabilities(tree, held_out, table.task) for tree in trees], axis=0)
    return _right(votes, held_out, table.task)


def forest_accuracy(parts: Sequence[tuple[Table, Split]], epsilon: float) -> float:
    """That of a forest whose trees ask a table each, all of the same rows in the same order."""
    share = PrivacyLoss.parse(repr(epsilon)).shares(len(parts))[0]
    votes = []
    for table, (rest, held_out) in parts:
        context = QueryContext(rest, table.dataset, share, randomness(), Inline())
        (tree,) = random_forest(context, RandomSplits(table.task, 1, DEPTH))
        votes.append(_probabilities(tree, held_out, table.task))
    (table, (_, held_out)) = parts[0]
    return _right(np.sum(votes, axis=0), held_out, table.task)


def naive_bayes(table: Table, split: Split, epsilon: float) -> float:
    rest, held_out = split
    context = _context(table, rest, epsilon)
    model = learn(context, class_counts(table.task, table.dataset, context.loss))
    return _right(_scores(model, held_out, table.task), held_out, table.task)


def rival(table: Table, split: Split, epsilon: float) -> float:
    """The forest of diffprivlib, with its defaults and public bounds."""
    rest, held_out = (_codes(part, table.task) for part in split)
    classes = [part.codes[table.task.classes.name].astype(np.int64) for part in split]
    rng = np.random.default_rng(randomness().stream().words(1))
    labels = len(table.task.labels)
    guess = predictions(rest, classes[0], held_out, table.task.levels, labels, epsilon, rng)
    return float((guess == classes[1]).mean())


def _codes(records: TableRecords, task: Task) -> Rows:
    return np.stack([records.codes[one.name].astype(np.int64) for one in task.attributes], axis=1)


LEARNERS: Mapping[str, Callable[[Table, Split, float], float]] = {
    "id3": id3,
    "forest": forest,
    "naive_bayes": naive_bayes,
}
RIVAL = "forest of diffprivlib"


def _context(table: Table, records: TableRecords, epsilon: float) -> QueryContext:
    loss = PrivacyLoss.parse(repr(epsilon))
    return QueryContext(records, table.dataset, loss, randomness(), Inline())


def _right(scores: Rows, records: TableRecords, task: Task) -> float:
    return float((scores.argmax(axis=1) == records.codes[task.classes.name]).mean())


def _scores(model: Model, records: TableRecords, task: Task) -> Rows:
    """The logarithm of the probability of each class, as the client works it out."""
    scores = _logs(model.prior.values)
    for one, counts in zip(task.attributes, model.attributes, strict=True):
        scores = scores + _logs(counts.values)[:, records.codes[one.name]].T
    return scores


def _logs(counts: Rows) -> Rows:
    positive = 1 + np.maximum(counts, 0)
    return np.log(positive / positive.sum(axis=-1, keepdims=True))


def _probabilities(tree: Mapping[str, Any], records: TableRecords, task: Task) -> Rows:
    """The class probabilities of the leaf of each row, as the client works them out."""
    attributes = {one.name: one for one in task.attributes}
    rows = len(records.codes[task.classes.name])
    shares = np.empty((rows, len(task.labels)))
    _fill(tree, np.arange(rows), records, attributes, shares)
    return shares


def _fill(
    node: Mapping[str, Any],
    rows: Rows,
    records: TableRecords,
    attributes: Mapping[str, Attribute],
    shares: Rows,
) -> None:
    if "label" in node:
        counts = np.maximum([count["value"] for count in node["counts"].values()], 0)
        whole = counts.sum()
        shares[rows] = counts / whole if whole else 1 / len(counts)
        return
    here = records.codes[node["attribute"]][rows]
    for code, level in enumerate(attributes[node["attribute"]].levels):
        below = rows[here == code]
        if below.size:
            _fill(node["branches"][level], below, records, attributes, shares)


def split(table: Table, number: int) -> Split:
    """(to learn from, held out) of one run."""
    order = np.random.default_rng(number).permutation(table.rows)
    held_out = table.rows // 10
    return table.taken(order[held_out:]), table.taken(order[:held_out])


def expectation(table: Table, epsilon: float) -> str:
    loss = PrivacyLoss.parse(repr(epsilon))
    return expected_best(table.task, table.dataset, loss, DEPTH)


def accuracies(folder: Path, name: str, epsilon: float, runs: int) -> dict[str, Rows]:
    """The accuracy in % of each learner, and of the rival, in every run, shape (runs,)."""
    table = tree_table(folder, name)
    parts = [split(table, run) for run in range(runs)]
    return {
        learner: 100 * np.array([how(table, part, epsilon) for part in parts])
        for learner, how in (*LEARNERS.items(), (RIVAL, rival))
    }


def measured(result: Result, setting: Setting) -> None:
    near, rows = 0, list[Sequence[Cell]]()
    for name in TABLES:
        points = [
            accuracies(setting.data, name, epsilon, setting.times(RUNS)) for epsilon in EPSILONS
        ]
        lines = {one: [mean(point[one]) for point in points] for one in points[0]}
        result.plot(name, "accuracy in %", EPSILONS, lines)
        table = tree_table(setting.data, name)
        for epsilon, point in zip(EPSILONS, points, strict=True):
            means = {one: float(point[one].mean()) for one in LEARNERS}
            chosen = expectation(table, epsilon)
            gap = max(means.values()) - means[chosen]
            near += gap <= NEAR
            best = max(means, key=means.__getitem__)
            rows.append((name, epsilon, chosen, best, gap, *map(mean, point.values())))
            for role, one in (("expected", chosen), ("best", best)):
                what = f"{name}, ε = {epsilon}: the {role} learner above the {RIVAL}"
                result.estimate(what, point[one] - point[RIVAL], "points")
    result.table(
        "what the quote expects, and the accuracies in %",
        ("table", "ε", "expects", "best", "points below", *LEARNERS, RIVAL),
        rows,
    )
    result.measure("points where the expected learner is near the best", near)
    for name, epsilon in SMALL:
        point = accuracies(setting.data, name, epsilon, setting.times(3 * RUNS))
        best = max(("forest", "naive_bayes"), key=lambda one: float(point[one].mean()))
        result.estimate(
            f"{name}, ε = {epsilon}: forest or naive Bayes above id3",
            point[best] - point["id3"],
            "points",
        )


BENCHES = (
    Bench(
        "trees.learners",
        "Is the learner that the quote names near the best of id3, forest and naive Bayes?",
        measured,
        200.0,
        (*LEARNERS, RIVAL),
        (
            Bar("points where the expected learner is near the best", least=20),
            Bar("*: forest or naive Bayes above id3", least=2),
            Bar("*: the expected learner above*", least=0),
        ),
        rows_of(*TABLES),
    ),
)
