"""The published limits of one upload, whatever its dataset's description allows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class UploadLimits:
    """All bound memory or time; none depends on records."""

    decompressed_bytes: int = 8 * 2**30
    document_bytes: int = 4 * 2**20
    """Bytes of a GraphML or node-link document: parsed as a whole, into up to 60 times as many."""
    edges: int = 50_000_000
    cells: int = 200_000_000
    """Rows times attributes of a table."""
    memory_bytes: int = 2 * 2**30
    """Bytes of memory that reading and preparing may take, beside files that are mapped."""
    preparation_work: int = 4 * 10**9
    """Units of ``preparation_work``, the count of steps that preparing a graph takes."""
