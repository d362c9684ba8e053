"""What each of several processes may take of the machine."""

from __future__ import annotations

import pytest

from app.config.settings import Settings


@pytest.mark.parametrize(
    ("workers", "processes", "slots", "threads"),
    [
        (1, 1, 2, 1),
        (2, 1, 2, 2),
        (4, 1, 3, 4),
        (8, 1, 4, 8),
        (4, 2, 1, 2),
        (8, 2, 2, 4),
        (8, 4, 1, 2),
        (2, 8, 1, 1),
    ],
)
def test_processes_share_the_slots_and_threads_of_the_machine(
    workers: int, processes: int, slots: int, threads: int
) -> None:
    each = Settings(workers=workers, processes=processes).of_each_process()
    assert (each.slots(), each.kernel_threads()) == (slots, threads)
