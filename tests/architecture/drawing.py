"""Draws the imports between rooms: ``python -m tests.architecture.drawing`` writes the pictures.

docs/dev/architecture.md shows them; a test fails when a picture no longer fits the imports. A room
stands one row above the highest room that it imports, so every arrow points down.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from pathlib import Path

from tests.architecture.imports import ROOT
from tests.architecture.rooms import TABLE, all_arrows

FOLDER = ROOT / "docs/dev"
WIDTH, HEIGHT, GAP, RISE = 112, 34, 26, 84


@lru_cache(maxsize=1)
def imports() -> dict[str, frozenset[str]]:
    """Room → the rooms that it imports today."""
    graph: dict[str, set[str]] = defaultdict(set)
    for arrow in all_arrows():
        graph[arrow.room].add(arrow.target)
    return {room: frozenset(targets) for room, targets in graph.items()}


def within(package: str) -> dict[str, list[str]]:
    """The arrows between the rooms of one package, by room."""
    rooms = [room for room in TABLE if room.startswith(f"{package}.")]
    others = {room: (TABLE[room] & set(rooms)) - {room} for room in rooms}
    return {room: sorted(imports().get(room, frozenset()) & others[room]) for room in rooms}


def heights(graph: dict[str, list[str]]) -> dict[str, int]:
    """The row of each room, 0 at the ground."""
    rows: dict[str, int] = {}

    def row(room: str) -> int:
        if room not in rows:
            rows[room] = 1 + max((row(other) for other in graph[room]), default=-1)
        return rows[room]

    for room in graph:
        row(room)
    return rows


def picture(package: str) -> str:
    """The SVG of one package."""
    graph = within(package)
    rows = heights(graph)
    by_row: dict[int, list[str]] = defaultdict(list)
    for room in graph:
        by_row[rows[room]].append(room)
    widest = max(len(rooms) for rooms in by_row.values())
    total = widest * (WIDTH + GAP) + GAP
    top = max(rows.values())
    place = {}
    for number, rooms in by_row.items():
        margin = (total - len(rooms) * (WIDTH + GAP) + GAP) / 2
        for i, room in enumerate(rooms):
            place[room] = (margin + i * (WIDTH + GAP), GAP + (top - number) * RISE)
    count = sum(map(len, graph.values()))
    size = f"{total} {2 * GAP + top * RISE + HEIGHT}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}"'
        f' font-family="sans-serif" font-size="13" role="img">',
        f"<title>{package}: {len(graph)} rooms, {count} arrows</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6b7f"/></marker></defs>',
    ]
    for room, targets in graph.items():
        x, y = place[room]
        for target in targets:
            u, v = place[target]
            bend = (v - y - HEIGHT) / 2
            lines.append(
                f'<path d="M{x + WIDTH / 2:.0f} {y + HEIGHT:.0f}C{x + WIDTH / 2:.0f} '
                f"{y + HEIGHT + bend:.0f} {u + WIDTH / 2:.0f} {v - bend:.0f} {u + WIDTH / 2:.0f} "
                f'{v:.0f}" fill="none" stroke="#5b6b7f" stroke-opacity=".55" '
                f'marker-end="url(#tip)"/>'
            )
    for room, (x, y) in place.items():
        lines.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" rx="5" '
            f'fill="#eef3f9" stroke="#2f5d8a"/><text x="{x + WIDTH / 2:.0f}" '
            f'y="{y + HEIGHT / 2 + 5:.0f}" text-anchor="middle">{room.partition(".")[2]}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def pictures() -> dict[Path, str]:
    return {FOLDER / f"rooms-{p}.svg": picture(p) for p in ("mechanisms", "storage", "app")}


if __name__ == "__main__":
    for path, text in pictures().items():
        path.write_text(text, "utf-8")
