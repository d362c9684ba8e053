"""What runs on a worker: one part of a job, found by its name where files are shared.

Nothing comes back through Dask: no result, and of an error not even its text, which could quote
records; that no result was left says enough.
"""

import logging
from collections import OrderedDict
from threading import Lock

from storage.cluster.scratch import Job, OtherKernels, Scratch
from storage.files.shared import Shared

log = logging.getLogger("distributed.tasks")

#: Jobs that stay open: their arrays are mapped once, and stay in the machine's memory.
MOST = 4


class Jobs:
    """The jobs that a worker is at, open as long as they exist; safe to share between threads."""

    def __init__(self, shared: Shared) -> None:
        self._scratch = Scratch(shared)
        self._open: OrderedDict[str, Job] = OrderedDict()
        self._lock = Lock()

    def run(self, name: str, part: int) -> None:
        """Do one part of a job, and leave there what is found."""
        job = self._job(name)
        self._scratch.write(name, part, job.kernel(job.arrays, job.parts[part]))

    def _job(self, name: str) -> Job:
        with self._lock:
            job = self._open.get(name) or self._scratch.open(name)
            self._open[name] = job
            self._open.move_to_end(name)
            if len(self._open) > MOST:
                self._open.popitem(last=False)
            return job

    def close_over(self) -> None:
        """Close jobs that are over: a disk gives room back when nobody maps a file."""
        with self._lock:
            for name in [name for name in self._open if self._scratch.is_over(name)]:
                del self._open[name]


_jobs: list[Jobs] = []


def use(shared: Shared) -> None:
    """Say once, in a worker's process, where files are shared."""
    _jobs[:] = [Jobs(shared)]


def run(name: str, part: int) -> None:
    """The one task there is."""
    try:
        _jobs[0].run(name, part)
    except OtherKernels:
        log.warning("the service has other kernels than this worker: upgrade and start it again")
    except Exception:
        # Not a word more: the text of an error could quote records.
        log.warning("a part could not be done")


def tidy() -> None:
    """Close what is over, also when no task comes any more."""
    for jobs in _jobs:
        try:
            jobs.close_over()
        except Exception:
            # The same; it is tried again in a minute.
            log.warning("jobs that are over could not be closed")
