"""Real graphs in a session: registered under public bounds, uploaded as they are."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.process.session import Session

#: The public bounds on the degrees of nodes in real graphs, as round numbers.
MAX_DEGREE = {"github": 10_000, "enron": 2_000, "dblp": 500, "gowalla": 20_000}


def register(
    session: Session,
    name: str,
    nodes: NDArray[np.int64],
    file: Path,
    max_degree: int,
    delta: str = "0",
) -> None:
    """Register and upload a graph; nodes are public as a count, or as a list if not numbered."""
    public: dict[str, Any] = {
        "name": name,
        "kind": "graph",
        "neighbouring": "edge",
        "max_degree": max_degree,
        "cap": {"epsilon": "10000", "delta": delta},
    }
    numbered = bool((nodes == np.arange(len(nodes))).all())
    if numbered:
        public["nodes"] = {"count": len(nodes)}
    session.ok("POST", "/v1/datasets", session.owner, json=public)
    if not numbered:
        listed = "".join(f"{node}\n" for node in nodes)
        headers = {"Content-Type": "text/csv"}
        path = f"/v1/datasets/{name}/nodes"
        session.ok("PUT", path, session.owner, content=listed.encode(), headers=headers)
    session.upload(name, file.read_bytes(), **{"Content-Encoding": "gzip"})
    allowance = {"epsilon": "10000", "delta": delta}
    session.ok("PUT", f"/v1/datasets/{name}/budgets/ada", session.owner, json=allowance)


def read_edges(file: Path) -> NDArray[np.int64]:
    """The edges of a compressed list with a header, shape (edges, 2)."""
    text = gzip.decompress(file.read_bytes()).partition(b"\n")[2].decode()
    return np.fromstring(text.replace("\n", ","), np.int64, sep=",").reshape(-1, 2)
