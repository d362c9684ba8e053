"""Runs experiments in processes of their own and keeps what each leaves behind.

A result file is written when its experiment is done, at once and whole. A run that was broken off
goes on with those that have no file of the same seed, size and data; nothing else is remembered.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import files, simulation
from benchmarks.bench import Bench, Setting
from benchmarks.result import OPEN, Verdict

#: A line of progress is printed after this many seconds in which no experiment ends.
PATIENCE = 20.0


@dataclass
class Run:
    """One start of the command: its experiments, where results go, and how far it is."""

    experiments: Sequence[Bench]
    folder: Path
    setting: Setting
    workers: int
    say: Callable[[str], None] = print
    started: float = field(default_factory=time.monotonic)
    failed: dict[str, str] = field(default_factory=dict)

    def stored(self, experiment: Bench) -> dict[str, Any] | None:
        """The result of an earlier start, where it is of the same question."""
        result = files.read(files.place(self.folder, experiment.name))
        question = question_of(experiment, self.setting)
        if result is None or not question.items() <= result.items():
            return None
        # ``--full`` takes a stored result only if all its claims are decided, and runs the others
        # again.
        undecided = any(claim["verdict"] == OPEN for claim in result["claims"])
        return None if self.setting.full and undecided else result

    def all(self) -> bool:
        """Run what is missing, then write the summary; False when an experiment failed."""
        waiting = {e.name: e for e in self.experiments if not self.stored(e)}
        done = {e.name for e in self.experiments if e.name not in waiting}
        whole = self.setting.more * sum(e.seconds for e in waiting.values())
        self.say(
            f"{len(waiting)} of {len(self.experiments)} experiments to run, {len(done)} are there; "
            f"about {minutes(whole / self.workers)} with {self.workers} processes"
        )
        running: dict[Future[float], Bench] = {}
        # Workers are spawned, so their numerical libraries read these variables and use one thread
        # each.
        os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self.workers, mp_context=context) as pool:
            while waiting or running:
                for experiment in self._ready(waiting, done)[: self.workers - len(running)]:
                    del waiting[experiment.name]
                    running[pool.submit(work, experiment, self.setting, self.folder)] = experiment
                if not running:
                    for name in waiting:
                        self.failed[name] = "an experiment that it needs has failed"
                    break
                ended, _ = wait(running, PATIENCE, FIRST_COMPLETED)
                for future in ended:
                    experiment = running.pop(future)
                    self._end(experiment, future, done)
                still = [*waiting.values(), *running.values()]
                self._progress(len(done) + len(self.failed), whole, still, running.values())
        self._summarise()
        return not self.failed

    def _ready(self, waiting: dict[str, Bench], done: set[str]) -> list[Bench]:
        """Those that have what they need, the longest first."""
        mine = {e.name for e in self.experiments}
        free = [e for e in waiting.values() if {n for n in e.needs if n in mine} <= done]
        return sorted(free, key=lambda e: -e.seconds)

    def _end(self, experiment: Bench, future: Future[float], done: set[str]) -> None:
        try:
            seconds = future.result()
        except Exception as error:
            self.failed[experiment.name] = f"{type(error).__name__}: {error}"
            self.say(f"FAILED {experiment.name}: {self.failed[experiment.name]}")
        else:
            done.add(experiment.name)
            self.say(f"done   {experiment.name} in {seconds:.0f} s")

    def _progress(self, ended: int, whole: float, still: Any, running: Any) -> None:
        rest = self.setting.more * sum(e.seconds for e in still)
        elapsed = time.monotonic() - self.started
        # The progress of a running experiment is unknown, so it counts as not begun until it ends.
        pace = elapsed / (whole - rest) if whole > rest else 1 / self.workers
        names = ", ".join(e.name for e in running) or "nothing"
        self.say(
            f"[{ended}/{len(self.experiments)}] {minutes(elapsed)} elapsed, "
            f"about {minutes(rest * pace)} left; running {names}"
        )

    def _summarise(self) -> None:
        # Imported late because it imports every experiment, and a worker process needs only one of
        # them.
        from benchmarks.reproduction.inventory import INVENTORY

        results = list(files.results(self.folder))
        by_name = {r["experiment"]: [c["verdict"] for c in r["claims"]] for r in results}
        verdicts = list(chain.from_iterable(by_name.values()))
        for result in results:
            for claim in result["claims"]:
                if claim["verdict"] == OPEN:
                    self.say(f"undecided: {result['experiment']}: {claim['says']}: {claim['seen']}")

        def of(experiments: Sequence[str]) -> dict[str, int]:
            mine = [verdict for name in experiments for verdict in by_name.get(name, ())]
            return {verdict: mine.count(verdict) for verdict in Verdict if verdict in mine}

        files.write(
            self.folder / files.SUMMARY,
            {
                "seed": self.setting.seed,
                "quick": self.setting.quick,
                "more": self.setting.more,
                "versions": files.versions(),
                "ended": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds_of_this_start": round(time.monotonic() - self.started, 1),
                "processor_seconds": round(sum(r["processor_seconds"] for r in results), 1),
                "experiments": len(results),
                "failed": self.failed,
                "verdicts": {verdict: verdicts.count(verdict) for verdict in Verdict},
                "claims": len(verdicts),
                "full": self.setting.full,
                "inventory": [
                    {
                        **asdict(one),
                        "recomputed": bool(set(one.experiments) & by_name.keys()),
                        "verdicts": of(one.experiments),
                    }
                    for one in INVENTORY
                ],
            },
        )


def work(experiment: Bench, setting: Setting, folder: Path) -> float:
    """Run one experiment in this process and write its file; its seconds."""
    own = experiment.own_seed(setting.seed)
    simulation.seed(own)
    earlier = {n: (files.read(files.place(folder, n)) or {})["stored"] for n in experiment.needs}
    begun, processor = time.perf_counter(), time.process_time()
    result = experiment.measure(replace(setting, seed=own, earlier=earlier))
    seconds = time.perf_counter() - begun
    files.write(
        files.place(folder, experiment.name),
        {
            "experiment": experiment.name,
            "title": experiment.question,
            "paper": experiment.paper,
            **question_of(experiment, setting),
            "versions": files.versions(),
            "seconds": round(seconds, 2),
            "processor_seconds": round(time.process_time() - processor, 2),
            **result.written(),
        },
    )
    return seconds


def question_of(experiment: Bench, setting: Setting) -> dict[str, Any]:
    """What a result must share with a setting to be its result: size and seed, and the sha256 that
    the data folder's manifest gives of each file that is read."""
    manifest = files.read(setting.data / "manifest.json") or {}
    listed = manifest.get("files", {})
    return {
        "form": files.FORM,
        "seed": setting.seed,
        "quick": setting.quick,
        "more": setting.more,
        "data": {name: listed.get(name, {}).get("sha256", "") for name in experiment.files},
    }


def minutes(seconds: float) -> str:
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d} min"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
