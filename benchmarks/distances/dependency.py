"""Distances from dependency contexts, by this checkout and by another one in the same rounds.

10⁶ rows of 15 attributes, contexts of two, for the values of all attributes. At ε = 10⁶ no noise is
left, so the distances of both checkouts have to be equal to the last bit, whatever words they draw.
Run it beside the tree from before sets of attributes were counted once:

    git archive c79ba1ac^ | tar -x -C DIR
    ./run bench dependency_speed --before DIR

This file is also run as a script with either checkout on the path. A line with a sensitivity comes
in for each round, and a line of JSON with the seconds and a digest goes out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from benchmarks.bench import Setting
    from benchmarks.result import Result

LEVELS = (2, 3, 5, 8, 10, 16, 16, 4, 6, 7, 9, 12, 2, 2, 2)
SENSITIVITIES = ("global", "local")
WORKERS = 2


class Learner:
    """The process of one checkout, as the bench sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.digests: dict[str, str] = {}

    @classmethod
    @contextmanager
    def started(cls, root: Path, rows: int) -> Iterator[Learner]:
        from benchmarks.service.processes import environment, interpreter

        with subprocess.Popen(
            [interpreter(root), __file__, str(rows)],
            env=environment(root),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            yield cls(process)

    def seconds(self, sensitivity: str) -> float:
        """Processor seconds of learning all distances once."""
        assert self._process.stdin
        assert self._process.stdout
        print(sensitivity, file=self._process.stdin, flush=True)
        outcome: dict[str, Any] = json.loads(self._process.stdout.readline())
        self.digests[sensitivity] = outcome["digest"]
        return float(outcome["seconds"])


def run(result: Result, setting: Setting) -> None:
    from app.demo.service import ROOT
    from benchmarks.rounds import Rounds

    rows = setting.size(1_000_000, 20_000)
    roots = {"ours": ROOT} | ({"before": setting.before} if setting.before else {})
    with ExitStack() as stack:
        learners = {
            name: stack.enter_context(Learner.started(root, rows)) for name, root in roots.items()
        }
        for sensitivity in SENSITIVITIES:
            ways = {
                name: lambda one=one, s=sensitivity: one.seconds(s)
                for name, one in learners.items()
            }
            rounds = Rounds.of("processor seconds", ways, setting.times(3), warm=0)
            rounds.report(result, f"distances of 15 attributes, {rows:,} rows, {sensitivity}")
            if setting.before is None:
                continue
            if learners["ours"].digests != learners["before"].digests:
                raise AssertionError("the tree before learns other distances")
            if setting.quick:  # A quick run has too few rows to compare the speed of counting.
                continue
            result.measure(f"{sensitivity}: before / ours", rounds.ratio("before", "ours"), "×")


def outcomes(rows: int) -> Iterator[dict[str, Any]]:
    """One outcome for each sensitivity that comes in."""
    from accounting.privacy_loss import NANO, PrivacyLoss
    from app.engine.execution import ThreadExecutor
    from mechanisms.distances.learn import learn
    from mechanisms.distances.options import Context, Options
    from mechanisms.distances.plan import plan
    from mechanisms.model.context import QueryContext
    from mechanisms.model.domains import (
        CategoricalAttribute,
        Dataset,
        NeighbouringRelation,
        TableDomain,
    )
    from mechanisms.model.records import TableRecords
    from mechanisms.model.sensitivity import Sensitivity
    from tests.support.randomness import SeededRandomness

    executor = ThreadExecutor(WORKERS)

    def outcome(sensitivity: str, codes: dict[str, NDArray[np.uint8]]) -> dict[str, Any]:
        count = len(codes["x0"])
        domain = TableDomain(attributes, max_rows=count)
        dataset = Dataset("made up", NeighbouringRelation.ADD_REMOVE, domain)
        mode = Sensitivity(sensitivity)
        options = Options(Context.MAX_DEPENDENCY, context_size=2, sensitivity=mode)
        loss, words = PrivacyLoss(10**6 * NANO), SeededRandomness(1)
        context = QueryContext(TableRecords(codes, {}), dataset, loss, words, executor)
        request = plan(dataset, options, None)
        start = time.process_time()
        metrics = learn(context, request)
        seconds = time.process_time() - start
        digest = sha256(b"".join(one.matrix.tobytes() for one in metrics)).hexdigest()
        return {"seconds": seconds, "digest": digest}

    attributes = tuple(
        CategoricalAttribute(f"x{i}", tuple(map(str, range(size)))) for i, size in enumerate(LEVELS)
    )
    codes = made_up(rows)
    for sensitivity in SENSITIVITIES:  # This loop compiles the kernels before the timed rounds.
        outcome(sensitivity, {name: one[:1000] for name, one in codes.items()})
    for line in sys.stdin:
        yield outcome(line.strip(), codes)


def made_up(rows: int) -> dict[str, NDArray[np.uint8]]:
    """Every column follows the first one in part, so that contexts have something to tell apart."""
    rng = np.random.default_rng(1)
    first = rng.integers(0, 16, rows)
    columns = {
        f"x{i}": np.where(rng.random(rows) < i / 20, first, rng.integers(0, 16, rows)) % size
        for i, size in enumerate(LEVELS)
    }
    return {name: one.astype(np.uint8) for name, one in columns.items()}


def main() -> None:
    for outcome in outcomes(int(sys.argv[1])):
        print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
else:
    from benchmarks.bench import BEFORE, Bar, Bench

    BENCHES = (
        Bench(
            "dependency_speed",
            "How much faster are dependency contexts than before sets were counted once?",
            run,
            120.0,
            (BEFORE,),
            (Bar("*: before / ours", least=5, before=True),),
        ),
    )
