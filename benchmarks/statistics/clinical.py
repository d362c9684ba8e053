"""Persons by condition in made-up clinical records, beside the truth of all uploaded rows.

50,000 persons, 200 conditions by Zipf's law, a fifth of the persons with more than eight rows. At
most c = 8 rows of a person are kept, so that ε = 1 covers whole persons. The noise is small beside
the bias of the rows that are not kept, and that bias is no fault of the choice of rows:

* A choice that treats all conditions alike keeps each of D > 8 conditions with a chance of 8/D.
  ``least bias`` is that of every such choice.
* Whatever is kept, a person moves the numbers of all conditions together by at most 8. So over all
  conditions D − 8 of each person's D conditions are missing: ``not countable`` is their share. A
  choice that favours some conditions takes from others what it gives to these.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries import QUERY
from app.service.warm import warm
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.result import Cell, Result
from benchmarks.simulation import randomness
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.randomness import Randomness
from storage.records.preparation import open_records, prepare_upload

PERSONS, CONDITIONS, MOST = 50_000, 200, 8
COMMONEST = 10
NAMES = tuple(f"C{i:03}" for i in range(CONDITIONS))
QUESTION = {"kind": "table", "by": ["condition"], "aggregates": [{"name": "persons"}]}

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """The person and the condition of each row, int64 (rows,)."""

    persons: Integers
    conditions: Integers

    @property
    def pairs(self) -> NDArray[np.bool_]:
        """Which person has which condition, (persons, conditions)."""
        has = np.zeros((PERSONS, CONDITIONS), np.bool_)
        has[self.persons, self.conditions] = True
        return has


class Errors(NamedTuple):
    """Errors of the ten commonest conditions as shares of the truth, float64 (10,)."""

    #: The error of the median over repeated releases of the count.
    released: Floats
    least_bias: Floats
    #: Half the width of the confidence interval of a released count.
    noise: Floats


def visits(exponent: float, longest: int) -> Rows:
    """Rows that may repeat a condition: 1 to 8 of most persons, 9 to ``longest`` of a fifth."""
    random = np.random.default_rng(0)
    persons = np.repeat(np.arange(PERSONS), _sizes(random, longest))
    return Rows(persons, random.choice(CONDITIONS, len(persons), p=_chances(exponent)))


def conditions(exponent: float, longest: int) -> Rows:
    """The same without repetitions, so that a fifth has more than eight conditions."""
    random = np.random.default_rng(0)
    sizes = _sizes(random, longest)
    # The largest values of log p + Gumbel noise are a sample without replacement with probabilities
    # p.
    scores = np.log(_chances(exponent)) + random.gumbel(size=(PERSONS, CONDITIONS))
    order = np.argsort(-scores, axis=1)[:, :longest]
    return Rows(np.repeat(np.arange(PERSONS), sizes), order[np.arange(longest) < sizes[:, None]])


def _sizes(random: np.random.Generator, longest: int) -> Integers:
    has_many = random.random(PERSONS) < 0.2
    few, many = random.integers(1, 9, PERSONS), random.integers(9, longest + 1, PERSONS)
    return np.where(has_many, many, few)


def _chances(exponent: float) -> Floats:
    weights = 1.0 / np.arange(1, CONDITIONS + 1) ** exponent
    return weights / weights.sum()


WORLDS: Mapping[str, Callable[[], Rows]] = {
    "at most 12 visits": partial(visits, 1.2, 12),
    "at most 20 visits": partial(visits, 1.2, 20),
    "at most 10 conditions": partial(conditions, 1.2, 10),
    "at most 12 conditions": partial(conditions, 1.2, 12),
    "at most 20 conditions": partial(conditions, 1.2, 20),
}


def errors(rows: Rows, folder: Path, runs: int, words: Randomness) -> Errors:
    """Uploads the rows in a random order, and answers the query ``runs`` times."""
    order = np.random.default_rng(1).permutation(len(rows.persons))
    lines = (f"{rows.persons[i]},{NAMES[rows.conditions[i]]}" for i in order)
    path = folder / "visits.csv"
    path.write_text("id,condition\n" + "\n".join(lines) + "\n")
    attributes = (CategoricalAttribute("condition", NAMES),)
    domain = TableDomain(attributes, max_rows=MOST * PERSONS, person="id")
    dataset = Dataset("visits", NeighbouringRelation.ADD_REMOVE, domain, MOST)
    prepare_upload(
        path,
        media_type="text/csv",
        gzipped=False,
        dataset=dataset,
        folder=folder / "version",
        executor=Inline(),
        key=bytes(range(32)),
    )
    records = open_records(folder / "version", domain)
    query = QUERY.validate_json(json.dumps(QUESTION))
    context = QueryContext(records, dataset, PrivacyLoss(NANO), words, Inline())
    cells = [query.compute(context).answer["cells"]["persons"] for _ in range(runs)]
    has = rows.pairs
    truth = has.sum(axis=0)
    commonest = np.argsort(-truth)[:COMMONEST]
    released = np.median([one["value"] for one in cells], axis=0)
    chances = np.minimum(1, MOST / np.maximum(has.sum(axis=1), 1))
    half = (np.array(cells[0]["high"]) - cells[0]["low"]) / 2
    numbers = np.array([released - truth, chances @ has - truth, half])
    return Errors(*(numbers / truth)[:, commonest])


def run(result: Result, setting: Setting) -> None:
    warm()
    lines: list[list[Cell]] = []
    for name, world in setting.fewer([*WORLDS.items()]):
        rows = world()
        with TemporaryDirectory() as folder:
            commonest = errors(rows, Path(folder), setting.times(25), randomness())
        sizes = rows.pairs.sum(axis=1)
        missing = np.maximum(sizes - MOST, 0).sum() / sizes.sum()
        largest, least = (np.abs(one).max() for one in (commonest.released, commonest.least_bias))
        shares = (np.mean(sizes > MOST), missing, least, largest, commonest.noise.max())
        lines.append([name, *(f"{100 * share:.2f}" for share in shares)])
        beyond = np.abs(commonest.released - commonest.least_bias).max()
        result.measure(f"{name}: largest error", 100 * largest, "%")
        result.measure(f"{name}: beyond the least bias", 100 * beyond, "%")
    columns = ["rows of a person", "persons with more than 8 conditions", "not countable"]
    result.table(
        "Persons by condition at ε = 1 and c = 8, in % of the truth of the ten commonest",
        [*columns, "least bias", "largest error", "noise, 95 %"],
        lines,
    )


BENCHES = (
    Bench(
        "clinical",
        "How far are persons by condition from the truth of all uploaded rows?",
        run,
        40.0,
        ("every choice of rows that treats conditions alike",),
        (
            Bar("at most 12 visits: largest error", most=5),
            Bar("*: beyond the least bias", most=1.2),
        ),
    ),
)
