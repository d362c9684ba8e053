"""Persons by condition in made-up clinical records, against the truth of all uploaded rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries import QUERY
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.executor import Inline
from storage.records.preparation import open_records, prepare_upload
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness

PERSONS, CONDITIONS, MOST, RUNS = 50_000, 200, 8, 25
NAMES = tuple(f"C{i:03}" for i in range(CONDITIONS))


def visits(exponent: float, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """A person and a condition per visit; a fifth of the persons has more than eight visits."""
    random = np.random.default_rng(0)
    has_many = random.random(PERSONS) < 0.2
    few, many = random.integers(1, 9, PERSONS), random.integers(9, longest + 1, PERSONS)
    persons = np.repeat(np.arange(PERSONS), np.where(has_many, many, few))
    weights = 1.0 / np.arange(1, CONDITIONS + 1) ** exponent
    return persons, random.choice(CONDITIONS, len(persons), p=weights / weights.sum())


@pytest.mark.slow
@pytest.mark.parametrize(("exponent", "longest", "bias"), [(1.2, 12, 0.05), (1.2, 20, 0.12)])
def test_the_commonest_conditions_are_near_the_truth_of_all_rows(
    tmp_path: Path, exponent: float, longest: int, bias: float
) -> None:
    """Noise is small beside the bias of the rows that are not kept, which is printed.

    No choice that treats all conditions alike has less of it: of a person with D > 8 conditions it
    keeps eight, each with a chance of 8/D.
    """
    persons, conditions = visits(exponent, longest)
    order = np.random.default_rng(1).permutation(len(persons))
    lines = (f"{persons[i]},{NAMES[conditions[i]]}" for i in order)
    path = tmp_path / "visits.csv"
    path.write_text("id,condition\n" + "\n".join(lines) + "\n")
    domain = TableDomain(
        (CategoricalAttribute("condition", NAMES),), max_rows=MOST * PERSONS, person="id"
    )
    dataset = Dataset("visits", NeighbouringRelation.ADD_REMOVE, domain, MOST)
    folder = tmp_path / "version"
    prepare_upload(
        path,
        media_type="text/csv",
        gzipped=False,
        dataset=dataset,
        folder=folder,
        executor=Inline(),
        key=bytes(range(32)),
    )
    records, loss = open_records(folder, domain), PrivacyLoss(NANO)
    query = QUERY.validate_json(
        json.dumps({"kind": "table", "by": ["condition"], "aggregates": [{"name": "persons"}]})
    )
    runs = [
        query.compute(context(records, dataset, loss, SeededRandomness(seed)))
        for seed in range(RUNS)
    ]
    released = np.array([run.answer["cells"]["persons"]["value"] for run in runs])
    truth = np.array([len(np.unique(persons[conditions == i])) for i in range(CONDITIONS)])
    commonest = np.argsort(-truth)[:10]
    errors = np.median(released[:, commonest], axis=0) / truth[commonest] - 1
    print(f"bias of the ten commonest: {np.round(100 * errors, 2).tolist()} %")
    has = np.zeros((PERSONS, CONDITIONS), np.bool_)
    has[persons, conditions] = True
    chances = np.minimum(1, MOST / np.maximum(has.sum(axis=1), 1))
    least = (chances @ has)[commonest] / truth[commonest] - 1
    print(f"bias of every even choice:  {np.round(100 * least, 2).tolist()} %")
    assert (np.abs(errors - least) < 0.012).all(), "one choice differs from its mean"
    assert (np.abs(errors) <= bias).all()
    assert (errors < 0.005).all(), "rows that are not kept hide persons, and add none"
