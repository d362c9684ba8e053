"""The published limits of one upload. No dataset description can raise them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class UploadLimits:
    """Each limit bounds memory or time; none depends on records."""

    decompressed_bytes: int = 8 * 2**30
    document_bytes: int = 4 * 2**20
    """Bytes of a GraphML or node-link document, which takes up to 60 times as many when parsed."""
    edges: int = 50_000_000
    cells: int = 200_000_000
    """Rows times attributes of a table."""
    memory_bytes: int = 2 * 2**30
    """Bytes of memory for reading and preparing, without mapped files."""
    preparation_work: int = 4 * 10**9
    """The most steps that preparing a graph may take, as ``preparation_work`` counts them."""
