"""The imports that the table of rooms does not have yet: this list may only become shorter."""

from __future__ import annotations

#: (file, room that it imports).
EXCEPTIONS: frozenset[tuple[str, str]] = frozenset(
    {
        ("app/cli/cluster.py", "app.cluster"),
        ("app/service/startup.py", "app.cluster"),
        ("app/service/startup.py", "mechanisms.model"),
        ("app/service/startup.py", "mechanisms.noise"),
        ("app/service/startup.py", "storage.cluster"),
        ("app/service/store.py", "storage.s3"),
        ("app/service/warm.py", "mechanisms.kernels"),
        ("app/service/warm.py", "mechanisms.model"),
        ("app/service/warm.py", "mechanisms.noise"),
    }
)
