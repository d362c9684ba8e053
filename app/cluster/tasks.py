"""The task that a worker runs: one part of a job, read by name from the shared files.

Nothing private returns through Dask: results are written to the shared files. Texts of errors are
dropped, because they could quote records. A missing result shows that a part has failed.
"""

import logging
from collections import OrderedDict
from threading import Lock

from storage.cluster.scratch import Job, OtherKernels, Scratch
from storage.files.shared import Shared

log = logging.getLogger("distributed.tasks")

#: The most jobs that a worker keeps open. An open job keeps its arrays mapped into memory, so that
#: its next parts need not map them again.
MOST = 4


class Jobs:
    """The open jobs of a worker. Safe to share between threads."""

    def __init__(self, shared: Shared) -> None:
        self._scratch = Scratch(shared)
        self._open: OrderedDict[str, Job] = OrderedDict()
        self._lock = Lock()

    def run(self, name: str, part: int) -> None:
        """Compute one part of a job, and write its result to the shared files."""
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
        """Close jobs that have ended, because a mapped file keeps its disk space."""
        with self._lock:
            for name in [name for name in self._open if self._scratch.is_over(name)]:
                del self._open[name]


_jobs: list[Jobs] = []


def use(shared: Shared) -> None:
    """Set the folder of shared files, once per worker process."""
    _jobs[:] = [Jobs(shared)]


def run(name: str, part: int) -> None:
    """Run one part of the job ``name``. Every task of a worker calls this function."""
    try:
        _jobs[0].run(name, part)
    except OtherKernels:
        log.warning("the service has other kernels than this worker: upgrade and start it again")
    except Exception:
        # The error is not logged, because its text could quote records.
        log.warning("a part could not be done")


def tidy() -> None:
    """Close jobs that have ended. Called periodically, also without new tasks."""
    for jobs in _jobs:
        try:
            jobs.close_over()
        except Exception:
            # The error is not logged, because its text could quote records. The next call tries
            # again to close these jobs.
            log.warning("jobs that are over could not be closed")
