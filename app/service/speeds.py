"""How fast this machine does each kind of work, measured with made-up records and stored.

Danger: a speed that followed the run times of queries would publish them. So speeds are measured
before any query runs, with made-up records alone, and never change while a service runs.

Every example of every query kind is a reference, on few records and on many, of several shapes. The
speeds are such that no reference takes longer than the cost of its query.
"""

import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
import numpy as np
import structlog
from numpy.typing import NDArray

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries import QUERY, QUERY_KINDS, Query, QueryContext
from app.queries.parts.cost import Speed, Speeds
from app.service.made_up import SHAPES, made_up
from mechanisms.kernels.compiled import KERNELS
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Inline
from mechanisms.model.records import Records, TableRecords
from mechanisms.model.work import Work
from mechanisms.noise.keystream import SystemRandomness

log = structlog.get_logger("privypurse.speeds")

#: Records of the references. Few of them show the time of calls, many that of units. Most of them,
#: in one shape that has small trees, tell the time of rows from that of nodes.
FEW, MANY, MOST = 16, 1 << 14, 1 << 17
#: The work on rows that most of them tell from that on nodes.
GROWTH = "rows of nodes"
_ROOT = Path(__file__).parents[2]
#: References per kind of work.
REFERENCES = 1
#: Runs of one reference. The first may compile kernels.
RUNS = 2
ROUNDS = 3000
Floats = NDArray[np.float64]


#: The file of speeds, beside the compiled kernels or in a data folder that is not shared.
FILE = "speeds.json"


def speeds_of_machine(data: Path | None = None) -> Speeds:
    """The stored speeds; those of another machine or version are measured anew, in some seconds.

    ``data``: the folder that holds them where the folder of compiled kernels cannot be written.
    """
    key = _machine()
    config: Any = numba.config
    folders = [Path(config.CACHE_DIR), *([] if data is None else [data])]
    for folder in folders:
        stored = _read(folder / FILE)
        if stored is not None and stored["machine"] == key:
            speeds = {kind: Speed(*pair) for kind, pair in stored["of"].items()}
            return Speeds(stored["query"], speeds)
    log.info("measuring the speed of this machine")
    measured = measure()
    of = {kind: [speed.call, speed.unit] for kind, speed in measured.of.items()}
    text = json.dumps({"machine": key, "query": measured.query, "of": of}, indent=1)
    for folder in folders:
        try:
            _write(folder / FILE, text)
            break
        except OSError:
            continue
    return measured


def _read(path: Path) -> dict[str, Any] | None:
    try:
        stored: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return stored


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_name(f"{path.name}.{os.getpid()}")
    own.write_text(text)
    own.replace(path)


@dataclass(frozen=True)
class Reference:
    """One query on made-up records."""

    query: Query
    records: Records
    dataset: Dataset

    @property
    def loss(self) -> PrivacyLoss:
        delta = self.query.delta_atto()
        # Trees split all nodes only if the noise is small.
        grows = GROWTH in self.query.work(self.dataset, PrivacyLoss(NANO, delta))
        return PrivacyLoss(1000 * NANO if grows else NANO, delta)

    @property
    def work(self) -> Work:
        return self.query.work(self.dataset, self.loss)

    def seconds(self) -> float:
        """The processor time of the fastest run: others were disturbed."""
        context = QueryContext(self.records, self.dataset, self.loss, SystemRandomness(), Inline())
        took: list[float] = []
        for _ in range(RUNS):
            start = time.thread_time()
            self.query.compute(context)
            took.append(time.thread_time() - start)
        return min(took)


def references(size: int, shape: str) -> Iterator[Reference]:
    """Examples that together contain every kind of work, in an order that sizes do not change."""
    seen: Counter[str] = Counter()
    for records, dataset in made_up(size, shape):
        if size >= MOST and not isinstance(records, TableRecords):
            continue  # so many nodes are too many for some examples
        for kind in QUERY_KINDS.values():
            for body in kind.examples.every(dataset):
                reference = Reference(QUERY.validate_json(json.dumps(body)), records, dataset)
                if size >= MOST and GROWTH not in reference.work:
                    continue
                if any(seen[name] < REFERENCES for name in reference.work):
                    seen.update(reference.work.keys())
                    yield reference


@cache
def kinds_of_work() -> frozenset[str]:
    """The kinds of work of all query kinds."""
    return frozenset(name for one in references(FEW, SHAPES[0]) for name in one.work)


def measure() -> Speeds:
    """Time every reference. Takes some seconds; kernels that are not compiled yet take longer."""
    works: list[Work] = []
    seconds: list[float] = []
    for size, shapes in ((FEW, SHAPES[:1]), (MANY, SHAPES), (MOST, SHAPES[:1])):
        by_shape = [
            [(one.work, one.seconds()) for one in references(size, shape)] for shape in shapes
        ]
        for same in zip(*by_shape, strict=True):
            works.append(same[0][0])
            seconds.append(max(took for _, took in same))
    return fitted(works, np.array(seconds))


def fitted(works: list[Work], seconds: Floats) -> Speeds:
    """The speeds by which every work takes at least its seconds, and little more."""
    names = sorted({name for one in works for name in one})
    amounts = np.zeros((len(works), 2 * len(names) + 1))
    amounts[:, -1] = 1  # what every query takes
    for row, one in zip(amounts, works, strict=True):
        for name, amount in one.items():
            place = 2 * names.index(name)
            row[place : place + 2] = amount.calls, amount.units
    costs = _covering(amounts / seconds[:, None])
    of = {name: Speed(*costs[2 * i : 2 * i + 2].tolist()) for i, name in enumerate(names)}
    return Speeds(float(costs[-1]), of)


def _covering(shares: Floats) -> Floats:
    """Non-negative x with ``shares`` @ x ≥ 1, close to 1: least squares, then raised."""
    largest = shares.max(axis=0)
    x = 1 / np.where(largest > 0, largest * shares.shape[1], 1)
    right, left = shares.sum(axis=0), shares.T @ shares
    for _ in range(ROUNDS):
        x *= right / np.maximum(left @ x, 1e-300)
    # A work that is not covered yet raises the speed that costs all others least.
    collateral = shares.sum(axis=0)
    for share in shares:
        missing = 1 - float(share @ x)
        if missing > 0:
            place = int(np.divide(share, collateral, where=share > 0, out=0 * share).argmax())
            x[place] += missing / share[place]
    return x


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
        "versions": [platform.python_version(), np.__version__, numba.__version__],
    }


def _statements() -> str:
    """A hash of the sources that state work, and of all by which it is measured."""
    digest = sha256()
    paths = [Path(__file__), Path(__file__).with_name("made_up.py")]
    for package in ("mechanisms", "app/queries"):
        paths += sorted((_ROOT / package).rglob("*.py"))
    for path in paths:
        source = path.read_bytes()
        if b"model.work import" in source or path.name in ("examples.py", "made_up.py"):
            digest.update(source)
    return digest.hexdigest()[:16]
