"""Memory for preparing a graph beside its mapped files, and the number of parts that fits into it.

The constants are upper bounds in bytes on arrays that exist at the same time. A node takes 128 for
rows, counts, work and bounds, 4 in every counting thread, and up to 20 in every merged part.
An edge takes 8 in ranked rows. Its supports take 4 in every part, or 12 when the merged supports
and their copy beside the rows exist together.
"""

NODE, NODE_THREAD, NODE_PART = 128, 4, 20
EDGE, EDGE_PART, EDGE_MERGED = 8, 4, 12

#: A graph is prepared in at most this many parts at the same time. No machine has so many threads,
#: so in practice the threads or the memory limit the parts.
MOST = 4096


def preparation_memory(nodes: int, edges: int, workers: int, parts: int) -> int:
    """The largest number of bytes that ``prepare_graph`` and ``prepare_totals`` take on ``workers``
    threads.

    ``parts`` is the number of merged parts, which their argument ``most_parts`` bounds.
    """
    by_node = NODE + NODE_THREAD * workers + NODE_PART * parts
    return nodes * by_node + edges * (EDGE + max(EDGE_MERGED, EDGE_PART * parts))


def most_parts(nodes: int, edges: int, workers: int, memory: int) -> int:
    """The largest number of parts whose work fits into ``memory`` bytes; 0 if none does."""
    low, high = 0, MOST
    while low < high:
        middle = (low + high + 1) // 2
        fits = preparation_memory(nodes, edges, workers, middle) <= memory
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
