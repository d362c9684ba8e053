"""Reads uploads in a process of its own and prints how each ended and what memory it took.

A line of its input is a JSON list: path, domain, media type, and whether the file is compressed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from mechanisms.model.domains import CategoricalAttribute, Domain, GraphDomain, TableDomain
from storage.errors import InvalidRecords, TooLarge
from storage.ingest import UploadLimits, read_records

NODES = 1_000_000
DOMAINS: dict[str, tuple[Domain, str]] = {
    "graph": (GraphDomain(NODES, NODES - 1), "source,target\n0,1\n"),
    "table": (
        TableDomain((CategoricalAttribute("sex", ("Male", "Female")),), max_rows=2_000_000),
        "sex\nMale\n",
    ),
}


def memory(field: str) -> int:
    """A field of this process's status, in MB."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(field + ":") + 1]) // 1024


def read(path: Path, domain: str, media_type: str, gzipped: bool) -> list[str]:
    try:
        read_records(
            path,
            media_type=media_type,
            gzipped=gzipped,
            domain=DOMAINS[domain][0],
            limits=UploadLimits(edges=3_000_000),
        )
    except InvalidRecords as error:
        return sorted({type for _, type, _ in error.errors})
    except TooLarge:
        return ["too_large"]
    return []


def measured(path: Path, domain: str, media_type: str, gzipped: bool) -> dict[str, Any]:
    # Resets the peak of memory (VmHWM) to the present use.
    Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), process_time()
    ended = read(path, domain, media_type, gzipped)
    seconds = process_time() - start
    return {"ended": ended, "seconds": seconds, "grown": memory("VmHWM") - before}


def main() -> None:
    with TemporaryDirectory() as folder:
        for domain, (_, text) in DOMAINS.items():
            warm = Path(folder) / domain
            warm.write_text(text)
            assert read(warm, domain, "text/csv", False) == []
    for line in sys.stdin:
        path, domain, media_type, gzipped = json.loads(line)
        print(json.dumps(measured(Path(path), domain, media_type, gzipped)), flush=True)


if __name__ == "__main__":
    main()
