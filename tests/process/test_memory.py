"""An idle service holds no more memory than it needs to answer at once."""

from __future__ import annotations

from pathlib import Path

from app.demo.service import ServiceProcess

#: The most megabytes of its own that an idle service may hold, with all kernels loaded. It holds
#: 161 here, of which SciPy takes 11. The service does not install SciPy, but Numba loads it where
#: it is installed.
MOST = 175


def test_an_idle_service_is_small(tmp_path: Path) -> None:
    service = ServiceProcess(tmp_path / "data")
    with service:
        pass
    # The second start is measured, because the first may compile kernels, measures an unknown
    # machine, and creates the schema.
    with service:
        # Anonymous memory belongs to the process alone. The rest of the resident memory is pages of
        # libraries, which processes share and the system takes back when it needs memory.
        words = Path(f"/proc/{service.pid}/status").read_text("ascii").split()
        own = int(words[words.index("RssAnon:") + 1]) / 1024
    assert own < MOST
