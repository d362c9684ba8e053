"""How fast this machine does each kind of work, measured with made-up records and stored.

Danger: a speed that followed the run times of queries would publish them. So speeds are measured
before any query runs, with made-up records alone, and never change while a service runs.

Every example of every query kind is a reference, on few records and on many, of several shapes. The
speeds are such that no reference takes longer than the cost of its query, and that the growth from
few records to many is one of units. ``app.service.fit`` finds them.
"""

import fcntl
import json
import os
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numba
import numpy as np
import structlog

from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import FEMTO
from app import __version__
from app.engine.requests import answer_text
from app.queries import QUERY, QUERY_KINDS, Query, QueryContext
from app.queries.parts.cost import Speed, Speeds
from app.service.fit import Timing, covers, fitted
from app.service.made_up import SHAPES, made_up
from mechanisms.kernels.compiled import KERNELS
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Inline
from mechanisms.model.records import Records, TableRecords
from mechanisms.model.work import Work
from mechanisms.noise.keystream import SystemRandomness

log = structlog.get_logger("privypurse.speeds")

#: The numbers of records on which reference queries are timed. Few records show the time of a call,
#: many show the time per record. The largest number exceeds the processor's caches. It is used only
#: for tables with equal rows: their trees stay small, so nodes of trees add little to the time.
FEW, MANY, MOST = 16, 1 << 14, 1 << 16
#: The kind of work of growing trees. Its reference queries run with a large loss: with more noise
#: chance decides how many nodes are split.
GROWTH = "rows of nodes"
#: The losses of the reference queries, in ε and, with Gaussian noise, in ρ. Each pair has the loss
#: of most queries, then that of queries that grow trees.
EPSILONS = NANO, 1000 * NANO
RHOS = FEMTO // 100, 1000 * FEMTO
_ROOT = Path(__file__).parents[2]
#: Each kind of work is timed by at least this many reference queries on tables, and by as many on
#: other records, if a query on them does such work.
REFERENCES = 1
#: The runs of a reference query, whose median counts. Other work on the machine disturbs some of
#: them, and the first one may compile kernels. In one of twelve random choices of five runs, the
#: median made some queries seem more than four times too expensive. None of twelve choices of seven
#: did.
RUNS = 7
#: How often a tree is grown in each run: half of the trees are larger than the others by chance.
OF_TREES = 5

#: The name of the file that stores the speeds, beside the compiled kernels or in a data folder.
FILE = "speeds.json"
LOCK = "speeds.lock"
#: The file keeps the latest measurements of this many machines and versions. So nothing is measured
#: anew when two versions of the service run alternately.
MACHINES = 8


class MachineSpeeds:
    """The stored speeds of this machine; those of another machine or version are measured anew."""

    def __init__(self, data: Path | None = None) -> None:
        """``data``: holds the speeds where the folder of compiled kernels cannot be written."""
        config: Any = numba.config
        self._folders = [Path(config.CACHE_DIR), *([] if data is None else [data])]
        self._machine = _machine()
        #: The speeds of this machine; None until they are measured.
        self.current = self._stored()

    def _stored(self) -> Speeds | None:
        measured = (one for folder in self._folders for one in _read(folder / FILE))
        stored = next((one for one in measured if one["machine"] == self._machine), None)
        if stored is None:
            return None
        speeds = {kind: Speed(*pair) for kind, pair in stored["of"].items()}
        return Speeds(stored["query"], speeds)

    def steps(self) -> Iterator[None]:
        """Measure and store them if they are not known, one reference per step.

        Of several processes on one data folder only the first measures; the others wait for it.
        """
        if self.current is not None:
            return
        with _alone(self._folders[-1] / LOCK):
            self.current = self._stored()
            if self.current is None:
                yield from self._measured()

    def _measured(self) -> Iterator[None]:
        measured = yield from measure()
        of = {kind: [speed.call, speed.unit] for kind, speed in measured.of.items()}
        new = {"machine": self._machine, "query": measured.query, "of": of}
        for folder in self._folders:
            try:
                _write(folder / FILE, [new, *_read(folder / FILE)][:MACHINES])
                break
            except OSError:
                continue
        self.current = measured


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of this file; without effect where a folder cannot be written or locked."""
    with ExitStack() as stack:
        with suppress(OSError):
            file = stack.enter_context(path.open("a"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read(path: Path) -> list[dict[str, Any]]:
    """The measurements in a file, the latest first; none if it cannot be read."""
    try:
        stored = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return stored if isinstance(stored, list) else []


def _write(path: Path, measured: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f"{path.name}.{os.getpid()}")
    own.write_text(json.dumps(measured, indent=1))
    own.replace(path)


@dataclass(frozen=True)
class Reference:
    """One query on made-up records."""

    query: Query
    records: Records
    dataset: Dataset
    #: True for a loss in ρ alone.
    is_gaussian: bool = False

    @property
    def loss(self) -> PrivacyLoss:
        usual, growing = (self._losses(place) for place in range(2))
        return growing if GROWTH in self.query.work(self.dataset, usual) else usual

    def _losses(self, place: int) -> PrivacyLoss:
        if self.is_gaussian:
            return PrivacyLoss(0, 0, RHOS[place], 1)
        return PrivacyLoss(EPSILONS[place], self.query.delta_atto())

    @property
    def work(self) -> Work:
        return self.query.work(self.dataset, self.loss)

    def seconds(self) -> float:
        """The processor time of one run.

        The text of the answer is part of the work. A run finds in caches what its price has left
        there, as a query at a new loss does.
        """
        context = QueryContext(self.records, self.dataset, self.loss, SystemRandomness(), Inline())
        forget()
        self.query.price(self.dataset, self.loss)
        start = time.thread_time()
        release = self.query.compute(context)
        answer_text(self.query, self.dataset, 1, release.answer)
        return time.thread_time() - start


def forget() -> None:
    """Empty the caches of mechanisms, which hold numbers that follow from losses and sizes."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("mechanisms.", "accounting.")):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


class Example(NamedTuple):
    """A query, the place of its records among ``made_up``, and whether few of them are enough."""

    query: Query
    place: int
    is_large: bool
    is_gaussian: bool = False


@cache
def _examples() -> tuple[Example, ...]:
    """Examples that together contain every kind of work, and all large and all Gaussian ones.

    A kind of work on tables and on graphs is timed on both: a unit of one may take longer.
    """
    seen: dict[type[Records], Counter[str]] = defaultdict(Counter)
    chosen: list[Example] = []
    for place, (records, dataset) in enumerate(made_up(FEW, SHAPES[0])):
        counts = seen[type(records)]
        for kind in QUERY_KINDS.values():
            for is_large, bodies in ((False, kind.examples.every), (True, kind.examples.large)):
                for body in bodies(dataset):
                    query = QUERY.validate_json(json.dumps(body))
                    kinds = query.work(dataset, PrivacyLoss(NANO, query.delta_atto())).keys()
                    if is_large or any(counts[name] < REFERENCES for name in kinds):
                        counts.update(kinds)
                        chosen.append(Example(query, place, is_large))
            for body in kind.examples.gaussian(dataset):
                query = QUERY.validate_json(json.dumps(body))
                chosen.append(Example(query, place, is_large=False, is_gaussian=True))
    return tuple(chosen)


def references(size: int, shape: str) -> dict[int, Reference]:
    """The references on so many records, by their numbers. The most records are those of tables.

    So many nodes are too many for some examples.
    """
    records = made_up(size, shape)
    return {
        number: Reference(
            one.query,
            *records[one.place],
            is_gaussian=one.is_gaussian,
        )
        for number, one in enumerate(_examples())
        if size == FEW
        or (not one.is_large and (size < MOST or isinstance(records[one.place][0], TableRecords)))
    }


@cache
def kinds_of_work() -> frozenset[str]:
    """The kinds of work of all query kinds."""
    return frozenset(name for one in references(FEW, SHAPES[0]).values() for name in one.work)


def measure() -> Generator[None, None, Speeds]:
    """Time every reference, one run per step, and return the speeds. The steps take a minute
    or two.

    Kernels that are not compiled yet take longer. Raises: RuntimeError if the speeds do not cover
    the timings.
    """
    # The growth of times with the number of records is measured only on tables with equal rows,
    # whose trees stay small. In other tables more records also mean more nodes of trees, and the
    # costs of records and of nodes could not be separated.
    places = [(size, SHAPES[0]) for size in (FEW, MANY, MOST)]
    places += [(MANY, shape) for shape in SHAPES[1:]]
    few, many, most, *others = yield from _timings([references(*one) for one in places])
    timings = list(few.values())
    for number, one in many.items():
        timings.append(one if number in most else one.grown_from(few[number]))
    for number, one in most.items():
        timings.append(one.grown_from(few[number], many[number]))
    for one_shape in others:
        timings += one_shape.values()
    speeds = fitted(timings)
    if not covers(speeds, timings):
        raise RuntimeError("the measured speeds do not cover their own references")
    return speeds


def _timings(
    timed: Sequence[Mapping[int, Reference]],
) -> Generator[None, None, list[dict[int, Timing]]]:
    took: list[dict[int, list[float]]] = [{number: [] for number in one} for one in timed]
    places = [(place, number) for place, one in enumerate(timed) for number in one]
    trees = [one for one in places if GROWTH in timed[one[0]][one[1]].work]
    others = [one for one in places if one not in trees]
    # The reference queries run in turn. A query that is run twice in a row finds its code and its
    # records in the processor's caches. Among other queries, as in a service, it takes up to half
    # as long again. All numbers of records are timed in one round: if all runs on many records fell
    # into slow minutes of the machine, they would show too much growth.
    for run in range(RUNS):
        log.info(
            "measuring the speed of this machine: two minutes, once; "
            f"round {run + 1} of {RUNS}, {len(places)} queries on made-up records"
        )
        # Each round has an order of its own. A query takes up to five times as long after one that
        # leaves the caches cold. In one order it would always follow the same one.
        mixed = Random(run).sample(others, len(others))
        for part in range(OF_TREES):
            for place, number in (*mixed[part::OF_TREES], *trees):
                took[place][number].append(timed[place][number].seconds())
                yield
    return [
        {number: Timing(one[number].work, tuple(seconds)) for number, seconds in runs.items()}
        for one, runs in zip(timed, took, strict=True)
    ]


def _machine() -> dict[str, Any]:
    """Everything that the speeds depend on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor()
    return {
        "processor": model,
        "processors": len(os.sched_getaffinity(0)),
        "kernels": KERNELS,
        "work": _statements(),
        "memory": [os.environ.get(name) for name in ("PYTHONMALLOC", "GLIBC_TUNABLES")],
        "versions": [__version__, platform.python_version(), np.__version__, numba.__version__],
    }


@cache
def _statements() -> str:
    """A hash of the sources that state work, and of all by which it is measured."""
    digest = sha256()
    paths = [Path(__file__).with_name(name) for name in ("speeds.py", "fit.py", "made_up.py")]
    for package in ("mechanisms", "app/queries"):
        paths += sorted((_ROOT / package).rglob("*.py"))
    for path in paths:
        source = path.read_bytes()
        if b"model.work import" in source or path.name.endswith(("examples.py", "made_up.py")):
            digest.update(source)
    return digest.hexdigest()[:16]
