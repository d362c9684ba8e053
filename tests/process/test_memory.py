"""An idle service holds no more memory than it needs to answer at once."""

from __future__ import annotations

from pathlib import Path

from app.demo.service import ServiceProcess

#: The most megabytes that an idle service may hold for itself, with all kernels loaded. It holds
#: 161 here, of which SciPy takes 11: Numba loads it where it is installed, and the service does not
#: install it.
MOST = 175


def test_an_idle_service_is_small(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path / "data")
    with service:
        pass
    # The first start may compile kernels, measures an unknown machine, and makes the schema.
    with service:
        # Anonymous memory is the process's own. The rest of the resident memory are pages of
        # libraries, which processes share, and which the system takes back when it needs memory.
        words = Path(f"/proc/{service.pid}/status").read_text("ascii").split()
        own = int(words[words.index("RssAnon:") + 1]) / 1024
    assert own < MOST
