"""Uploads for tests: small domains, files from text, and the errors of refused files."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mechanisms.model.domains import (
    Attribute,
    CategoricalAttribute,
    Domain,
    GraphDomain,
    NumericAttribute,
    TableDomain,
)
from storage.errors import InvalidRecords
from storage.ingest import Coded, UploadLimits, read_records

SEX = CategoricalAttribute("sex", ("Female", "Male"))
AGE = NumericAttribute("age", 0.0, 120.0, tuple(12.0 * i for i in range(11)))


def graph_domain(nodes: int = 10, max_degree: int | None = None, **extra: Any) -> GraphDomain:
    return GraphDomain(nodes, nodes - 1 if max_degree is None else max_degree, **extra)


def table_domain(*attributes: Attribute, max_rows: int | None = 1000, **extra: Any) -> TableDomain:
    return TableDomain(attributes or (SEX, AGE), max_rows=max_rows, **extra)


def file_of(folder: Path, content: str | bytes, *, gzipped: bool = False) -> Path:
    path = folder / f"upload-{len(list(folder.iterdir()))}"
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if gzipped else data)
    return path


def read(
    path: Path,
    domain: Domain,
    media_type: str = "text/csv",
    *,
    gzipped: bool = False,
    **limits: int,
) -> Coded:
    return read_records(
        path, media_type=media_type, gzipped=gzipped, domain=domain, limits=UploadLimits(**limits)
    )


def refusals(
    path: Path,
    domain: Domain,
    media_type: str = "text/csv",
    *,
    gzipped: bool = False,
    **limits: int,
) -> list[tuple[tuple[str | int, ...], str]]:
    """Returns (place, type) of every error, after checking the lengths of the texts."""
    with pytest.raises(InvalidRecords) as caught:
        read(path, domain, media_type, gzipped=gzipped, **limits)
    assert 1 <= len(caught.value.errors) <= 20
    assert all(0 < len(text) < 200 for _, _, text in caught.value.errors)
    return [(place, type) for place, type, _ in caught.value.errors]


def edges_csv(edges: Iterable[tuple[object, object]]) -> str:
    return "source,target\n" + "".join(f"{a},{b}\n" for a, b in edges)
