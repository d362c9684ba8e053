"""Memory for preparing a graph beside its mapped files, and the number of parts that fits into it.

Upper bounds in bytes on arrays that exist at the same time. A node has its rows, counts, work and
bounds, 4 bytes in every thread that counts egos, and up to 20 in every part that is merged. An edge
is stored twice in ranked rows (8). Then it is stored once in the supports of every part (4), or
once in all parts together and twice beside the rows (12).
"""

NODE, NODE_THREAD, NODE_PART = 128, 4, 20
EDGE, EDGE_PART, EDGE_MERGED = 8, 4, 12

#: More parts than any machine has threads.
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
