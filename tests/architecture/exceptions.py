"""The imports that the table of rooms does not have yet: this list may only become shorter."""

from __future__ import annotations

#: (file, room that it imports).
EXCEPTIONS: frozenset[tuple[str, str]] = frozenset(
    {
        ("app/cli/cluster.py", "app.cluster"),
        ("app/dashboard/drawn.py", "app.rendering"),
        ("app/service/startup.py", "app.cluster"),
        ("app/service/startup.py", "mechanisms.model"),
        ("app/service/startup.py", "mechanisms.noise"),
        ("app/service/startup.py", "storage.cluster"),
        ("app/service/store.py", "storage.s3"),
        ("app/service/warm.py", "mechanisms.kernels"),
        ("app/service/warm.py", "mechanisms.model"),
        ("app/service/warm.py", "mechanisms.noise"),
        ("app/service/warm.py", "mechanisms.objectives"),
        ("app/service/warm.py", "mechanisms.selection"),
        ("app/service/warm.py", "mechanisms.utilities"),
        ("app/service/warm_distances.py", "mechanisms.kernels"),
        ("app/service/warm_statistics.py", "mechanisms.model"),
        ("app/service/warm_statistics.py", "mechanisms.noise"),
        ("app/service/warm_statistics.py", "mechanisms.statistics"),
        ("app/service/warm_tables.py", "mechanisms.kernels"),
        ("app/service/warm_tables.py", "mechanisms.model"),
        ("app/service/warm_trees.py", "mechanisms.model"),
        ("app/service/warm_trees.py", "mechanisms.selection"),
        ("app/service/warm_trees.py", "mechanisms.trees"),
        ("app/usecases/queries.py", "app.rendering"),
    }
)
