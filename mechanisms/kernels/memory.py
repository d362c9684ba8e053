"""What preparing a graph takes of memory beside mapped files, and into how many parts it may go.

Bytes, from above, of the arrays that are there at the same time: a node has its rows, counts, work
and bounds, and 4 bytes in every thread that looks at egos; every part that is merged holds up to 20
more of it. An edge stands twice in ranked rows (8), and then once in the supports of every part
(4), or once in all of them together and twice beside the rows (12).
"""

from __future__ import annotations

NODE, NODE_THREAD, NODE_PART = 128, 4, 20
EDGE, EDGE_PART, EDGE_MERGED = 8, 4, 12

#: More parts than anybody has threads.
MOST = 4096


def preparation_memory(nodes: int, edges: int, workers: int, parts: int) -> int:
    """Bytes that ``prepare_graph`` and ``prepare_totals`` take at most on ``workers`` threads.

    ``parts``: how many parts are merged, as their argument ``most_parts`` bounds them.
    """
    by_node = NODE + NODE_THREAD * workers + NODE_PART * parts
    return nodes * by_node + edges * (EDGE + max(EDGE_MERGED, EDGE_PART * parts))


def most_parts(nodes: int, edges: int, workers: int, memory: int) -> int:
    """Into how many parts the work may go for it to fit into ``memory`` bytes; 0 when it cannot."""
    low, high = 0, MOST
    while low < high:
        middle = (low + high + 1) // 2
        fits = preparation_memory(nodes, edges, workers, middle) <= memory
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
