"""Small trees for ``warm``, by the ways of production."""

from __future__ import annotations

from decimal import Decimal
from itertools import product

from accounting.privacy_loss import PrivacyLoss
from app.service.warm_tables import warm_tables
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.trees.evolutionary import Search, search
from mechanisms.trees.evolutionary.fitness import SENSITIVITIES, Fitness
from mechanisms.trees.id3 import Id3, grow
from mechanisms.trees.id3.split_rule import CRITERIA
from mechanisms.trees.task import Task


def warm_trees(randomness: Randomness, executor: Executor) -> None:
    """Grow and search trees on the made-up table, by every criterion and sensitivity."""
    records, dataset, _ = warm_tables()["attributes"]
    assert isinstance(records, TableRecords)
    loss = PrivacyLoss(10**12)
    selector = SELECTORS["permute_and_flip"]
    task = Task.of(dataset, None, "class")
    for criterion, sensitivity in product(CRITERIA, Sensitivity):
        asked = Id3(task, 2, criterion, sensitivity, selector, True)
        grow(records, dataset, asked, loss, randomness, executor)
    weights = {"true_positive_rate": Decimal(2), "true_negative_rate": Decimal(1)}
    for sensitivity in SENSITIVITIES:
        fitness = Fitness("weighted_sum", weights, sensitivity)
        wanted = Search(
            task=task,
            fitness=fitness,
            selector=selector,
            positive_class="a",
            population=4,
            generations=1,
            selected=2,
            outputs=1,
            initial_depth=2,
            max_depth=2,
        )
        search(records, dataset, wanted, loss, randomness, executor)
