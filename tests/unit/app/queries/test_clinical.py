"""Persons by condition in made-up clinical records, against the truth of all uploaded rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.statistics import clinical
from tests.support.randomness import SeededRandomness

RUNS = 25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "bias"), [("at most 12 visits", 0.05), ("at most 20 visits", 0.12)]
)
def test_the_commonest_conditions_are_near_the_truth_of_all_rows(
    tmp_path: Path, world: str, bias: float
) -> None:
    """Noise is small beside the bias of the rows that are not kept, which is printed.

    No choice that treats all conditions alike has less of it: of a person with D > 8 conditions it
    keeps eight, each with a chance of 8/D.
    """
    rows = clinical.WORLDS[world]()
    errors = clinical.errors(rows, tmp_path, RUNS, SeededRandomness(1))
    print(f"bias of the ten commonest: {np.round(100 * errors.released, 2).tolist()} %")
    print(f"bias of every even choice:  {np.round(100 * errors.least_bias, 2).tolist()} %")
    beyond = np.abs(errors.released - errors.least_bias)
    assert (beyond < 0.012).all(), "one choice differs from its mean"
    assert (np.abs(errors.released) <= bias).all()
    assert (errors.released < 0.005).all(), "rows that are not kept hide persons, and add none"
