"""The work of a query is the same for all records, or declared with a public bound.

Line counts of ``mechanisms``, elements of arrays, random words and parts are compared on datasets
of one description, kernels as plain Python. Library calls count as one line: the rule of
tests/architecture/test_private_arrays.py forbids those whose time depends on values.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.queries import QUERY_KINDS
from mechanisms.model.work import work
from tests.architecture.imports import ROOT
from tests.evidence.timing import planted
from tests.evidence.timing.meter import RUNS_OF_UNIT, Meter

SMALL, LARGE = np.array([1, 2, 3, 3]), np.array([1, 2, 3, 9])


def meter(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.evidence.timing.metered", *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stderr
    findings: dict[str, Any] = json.loads(done.stdout)
    return findings


@pytest.mark.long
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_work_is_equal_or_declared_and_within_its_bound(every: bool) -> None:
    findings = meter(*(["--all"] if every else []))
    assert findings["differ"] == {}
    assert findings["beyond"] == []
    assert findings["queries"] > 400
    # Enough declared functions must run: a declaration that no query reaches could hide work.
    assert len(findings["declared"]) >= 12
    # No line runs more often than the cost of its query counts.
    assert findings["uncounted"] == {}


@pytest.mark.slow
def test_runs_of_lines_grow_no_faster_than_the_cost() -> None:
    """From few records to many, where what a call takes on its own no longer hides the growth."""
    findings = meter("--growth")
    assert findings["queries"] > 200
    assert findings["faster"] == {}


def test_a_line_that_runs_more_often_than_the_cost_counts_is_found() -> None:
    counts = run(planted.equal, np.arange(2 * RUNS_OF_UNIT))
    assert counts.uncounted(work("a unit per value", 2 * RUNS_OF_UNIT, calls=0)) is None
    assert counts.uncounted(work("one unit", 1, calls=0)) is not None


def test_every_kind_is_metered_or_named() -> None:
    # The file is read as text, because importing ``metered`` needs a process without compiled
    # kernels.
    text = (ROOT / "tests/evidence/timing/metered.py").read_text("utf-8")
    assert 'ADAPTIVE = ("tree", "distance", "clustering")' in text
    named = {name for name in QUERY_KINDS if f'QUERY_KINDS["{name}"]' in text}
    assert set(QUERY_KINDS) == named | {"tree", "distance", "clustering"}


def run(fault: Callable[..., object], values: np.ndarray[Any, Any]) -> Meter:
    counts = Meter(root=str(ROOT / "tests/evidence/timing/planted.py"))
    counts.run(lambda words, parts: fault(values, words.stream()), seed=1)  # noqa: ARG005
    return counts


@pytest.mark.parametrize(
    "fault",
    [
        planted.ends_at_a_value,
        planted.shrinks,
        planted.doubles_a_block,
        planted.reads_a_word_for_large_scores,
        planted.undeclared_words,
    ],
    ids=lambda fault: fault.__name__,
)
def test_a_planted_fault_is_found(fault: Callable[..., object]) -> None:
    assert run(fault, SMALL).differs(run(fault, LARGE))


@pytest.mark.parametrize(
    "code",
    [planted.equal, planted.declared, planted.declared_words],
    ids=lambda code: code.__name__,
)
def test_equal_or_declared_work_passes(code: Callable[..., object]) -> None:
    small, large = run(code, SMALL), run(code, LARGE)
    assert small.differs(large) == []
    assert small.beyond == large.beyond == []


def test_work_beyond_a_declared_bound_is_found() -> None:
    assert run(planted.bound_too_small, SMALL).beyond
    assert run(planted.words_beyond_their_bound, LARGE).beyond
