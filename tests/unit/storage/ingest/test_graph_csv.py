"""Edge lists as CSV: what is accepted, what is refused, and on which line."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from storage.errors import InvalidRecords, TooLarge
from storage.ingest import CodedGraph, graph
from storage.ingest.lines import CHUNK
from tests.support.uploads import edges_csv, file_of, graph_domain, read, refusals


def edges_of(coded: object) -> set[tuple[int, int]]:
    assert isinstance(coded, CodedGraph)
    sources = np.repeat(np.arange(len(coded.indptr) - 1), np.diff(coded.indptr))
    pairs = zip(sources.tolist(), coded.indices.tolist(), strict=True)
    return {(a, b) for a, b in pairs if a < b}


@pytest.mark.parametrize(
    "text",
    [
        "source,target\n0,1\n3,2\n",
        "target,source\n1,0\n2,3\n",
        "source,target\r\n0,1\r\n3,2\r\n",
        "source,target\n0,1\n3,2",
        "source,target\r\n0,1\r\n3,2\r",
        '"source","target"\n"0","1"\n3,"2"\n',
        "\ufeffsource,target\n0,1\n3,2\n",
    ],
)
def test_forms_of_the_same_graph(tmp_path: Path, text: str) -> None:
    for gzipped in (False, True):
        coded = read(file_of(tmp_path, text, gzipped=gzipped), graph_domain(), gzipped=gzipped)
        assert edges_of(coded) == {(0, 1), (2, 3)}


@pytest.mark.parametrize("text", ["source,target", "source,target\n", "\ufeffsource,target\r\n"])
def test_a_graph_without_edges(tmp_path: Path, text: str) -> None:
    coded = read(file_of(tmp_path, text), graph_domain(3))
    assert isinstance(coded, CodedGraph)
    assert coded.indptr.tolist() == [0, 0, 0, 0]
    assert coded.indices.dtype == np.int32
    assert len(coded.indices) == 0


@pytest.mark.parametrize("seed", range(5))
def test_equals_networkx(tmp_path: Path, seed: int) -> None:
    graph = nx.gnp_random_graph(60, 0.2, seed=seed)
    shuffled = np.random.default_rng(seed).permuted(np.array(graph.edges), axis=1)
    coded = read(file_of(tmp_path, edges_csv(shuffled.tolist())), graph_domain(60))
    assert isinstance(coded, CodedGraph)
    for node in graph:
        row = coded.indices[coded.indptr[node] : coded.indptr[node + 1]]
        assert row.tolist() == sorted(graph[node])


def test_several_blocks_are_one_graph(tmp_path: Path) -> None:
    graph = nx.circulant_graph(60_000, [1, 2, 3, 4])
    path = file_of(tmp_path, edges_csv(graph.edges))
    assert path.stat().st_size > CHUNK
    assert edges_of(read(path, graph_domain(60_000, 8))) == {
        (min(edge), max(edge)) for edge in graph.edges
    }
    last = path.read_text().count("\n") + 1
    with path.open("a") as file:
        file.write("1,0\n")
    assert refusals(path, graph_domain(60_000)) == [(("line", last), "duplicate_edge")]
    # Degrees are counted over all blocks of the file: the nodes have 8 edges in earlier blocks, and
    # the edge in the last block is one too many.
    assert refusals(path, graph_domain(60_000, 8)) == [(("line", last), "degree")]


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("10", "above the last node"),
        ("-1", "negative"),
        ("1.0", "no integer"),
        ("0x1", "hexadecimal"),
        ("1_0", "separator"),
        ("+1", "sign"),
        (" 1", "space"),
        ("", "empty"),
        ("1e0", "exponent"),
        ("99999999999999999999", "above 64 bits"),
        ("18446744073709551617", "1 modulo 2^64"),
        ("٣", "digits of another script"),
        ("NULL", "null"),
        ("=1+1", "formula"),
    ],
)
def test_unknown_nodes(tmp_path: Path, cell: str, why: str) -> None:
    path = file_of(tmp_path, edges_csv([(0, 1), (2, cell), (4, 5), (cell, 6)]))
    assert refusals(path, graph_domain(10)) == [
        (("line", 3, "target"), "unknown_node"),
        (("line", 5, "source"), "unknown_node"),
    ], why


def test_self_loops_and_duplicates(tmp_path: Path) -> None:
    loops = file_of(tmp_path, edges_csv([(0, 1), (2, 2), (3, 4), (5, 5)]))
    assert refusals(loops, graph_domain()) == [
        (("line", 3), "self_loop"),
        (("line", 5), "self_loop"),
    ]
    turned = file_of(tmp_path, edges_csv([(1, 2), (3, 4), (2, 1)]))
    assert refusals(turned, graph_domain()) == [(("line", 4), "duplicate_edge")]
    repeated = file_of(tmp_path, edges_csv([(3, 4), (1, 2), (3, 4), (1, 2)]))
    assert refusals(repeated, graph_domain()) == [(("line", 4), "duplicate_edge")]


def test_degree_bound_is_exact(tmp_path: Path) -> None:
    star = [(0, 1), (2, 0), (0, 3), (4, 5)]
    assert edges_of(read(file_of(tmp_path, edges_csv(star)), graph_domain(10, 3)))
    path = file_of(tmp_path, edges_csv([*star, (6, 0), (0, 7), (8, 9)]))
    expected = [(("line", 6), "degree"), (("line", 7), "degree")]
    assert refusals(path, graph_domain(10, 3)) == expected
    assert refusals(file_of(tmp_path, edges_csv([(0, 1)])), graph_domain(10, 0)) == [
        (("line", 2), "degree")
    ]


@pytest.mark.parametrize("seed", range(5))
def test_degrees_are_followed_from_piece_to_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(graph, "PIECE", 7)
    edges = [tuple(pair) for pair in nx.gnp_random_graph(12, 0.7, seed=seed).edges]
    degrees, expected = [0] * 12, []
    for line, pair in enumerate(edges, 2):
        for node in pair:
            degrees[node] += 1
        if any(degrees[node] > 5 for node in pair):
            expected.append((("line", line), "degree"))
    assert refusals(file_of(tmp_path, edges_csv(edges)), graph_domain(12, 5)) == expected[:20]


def test_one_edge_half_a_million_times_is_refused_in_little_memory(tmp_path: Path) -> None:
    """A gzip bomb of a line that is fine by itself: a block of it is 2 MB of text."""
    path = file_of(tmp_path, "source,target\n" + "0,1\n" * 500_000)
    domain = graph_domain(1000, 900)
    # The first call also loads libraries, whose memory the measurement below must not count.
    refusals(path, domain)
    tracemalloc.start()
    try:
        errors = refusals(path, domain)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert errors[0] == (("line", 902), "degree")
    # At its peak the reader holds the text of a block twice, and its codes. An earlier version of
    # the search for the line of the error took 56 MB.
    assert peak < 32 * 2**20


def test_only_the_first_twenty_errors_are_told_in_order(tmp_path: Path) -> None:
    path = file_of(tmp_path, edges_csv([(0, 1)] + [("x", "y")] * 500))
    errors = refusals(path, graph_domain())
    assert len(errors) == 20
    assert [place[1] for place, _ in errors] == sorted([*range(3, 13)] * 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (("line", 1), "columns")),
        ("\n", (("line", 1), "columns")),
        ("0,1\n", (("line", 1), "columns")),
        ("source\n1\n", (("line", 1), "columns")),
        ("source,target,weight\n0,1,2\n", (("line", 1), "columns")),
        ("source,source,target\n0,1,2\n", (("line", 1), "columns")),
        ("Source,Target\n0,1\n", (("line", 1), "columns")),
        ('source,"target\n0,1\n', (("line", 1), "csv")),
        ("source,target\n0,1\n2\n3,4\n", (("line", 3), "csv")),
        ("source,target\n0,1\n2,3,4\n", (("line", 3), "csv")),
        ("source,target\n0,1\n2,3,\n", (("line", 3), "csv")),
        ("source,target\n0,1\n\n2,3\n", (("line", 3), "csv")),
        ("source,target\n0,1\n\n", (("line", 3), "csv")),
        ("source,target\n0,1\r\n\r\n2,3\r\n", (("line", 3), "csv")),
        ("source;target\n0;1\n", (("line", 1), "columns")),
        ('source,target\n0,1\n2,"3\n"\n4,5\n', (("line", 3), "csv")),
        ('source,target\n0,1\n"2,3\n4,5\n', (("line", 3), "csv")),
        ("source,target\n0,1\n2\r,3\n", (("line", 3), "csv")),
        ("source,target\r0,1\r2,3\r", (("line", 1), "csv")),
        (b"source,target\n0,1\n2,\0\n", (("line", 3), "encoding")),
        (b"source,target\n0,1\n2,\xff\n", (("line", 3), "encoding")),
        (b"sourc\xe9,target\n0,1\n", (("line", 1), "encoding")),
        ("source,target\n0,1\n".encode("utf-16"), (("line", 1), "encoding")),
        (b"source,target\n0,1\n" + b"7" * 2**21, (("line", 3), "line_length")),
        (bytes(range(256)) * 100, (("line", 1), "encoding")),
        (gzip.compress(b"source,target\n0,1\n", mtime=0), (("upload",), "gzip")),
    ],
)
def test_what_is_no_edge_list(
    tmp_path: Path, text: str | bytes, expected: tuple[object, str]
) -> None:
    assert refusals(file_of(tmp_path, text), graph_domain())[0] == expected
    if expected[1] != "gzip":
        gzipped = file_of(tmp_path, text, gzipped=True)
        assert refusals(gzipped, graph_domain(), gzipped=True)[0] == expected


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(edges_csv([(i, i + 1) for i in range(5000)]).encode())
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    for content in (whole[:-1], whole[: len(whole) // 2], whole + b"x", bytes(broken), b"0,1\n"):
        path = file_of(tmp_path, content)
        kinds = {type for _, type in refusals(path, graph_domain(6000), gzipped=True)}
        assert kinds <= {"gzip", "unknown_node", "csv", "encoding"}
    assert refusals(file_of(tmp_path, whole[:-1]), graph_domain(6000), gzipped=True) == [
        (("upload",), "gzip")
    ]
    # A gzip file may consist of several members, one after another. They are read as one text.
    two = gzip.compress(b"source,target\n0,") + gzip.compress(b"1\n2,3\n")
    assert edges_of(read(file_of(tmp_path, two), graph_domain(), gzipped=True)) == {(0, 1), (2, 3)}


def test_limits_of_any_upload(tmp_path: Path) -> None:
    path = file_of(tmp_path, edges_csv([(0, 1), (2, 3), (4, 5)]))
    size = path.stat().st_size
    assert edges_of(read(path, graph_domain(), edges=3, decompressed_bytes=size))
    with pytest.raises(TooLarge):
        read(path, graph_domain(), edges=2)
    with pytest.raises(TooLarge):
        read(path, graph_domain(), decompressed_bytes=size - 1)


def test_integer_labels(tmp_path: Path) -> None:
    domain = graph_domain(4, labels=[70, -5, 2**63 - 1, 0])
    coded = read(file_of(tmp_path, edges_csv([(-5, 70), (0, 2**63 - 1), ("070", 0)])), domain)
    assert edges_of(coded) == {(0, 1), (2, 3), (0, 3)}
    path = file_of(tmp_path, edges_csv([(1, 70), (70, 2**63), (-(2**63), 0)]))
    assert refusals(path, domain) == [
        (("line", 2, "source"), "unknown_node"),
        (("line", 3, "target"), "unknown_node"),
        (("line", 4, "source"), "unknown_node"),
    ]


def test_text_labels_compare_as_text(tmp_path: Path) -> None:
    domain = graph_domain(5, labels=["ann", "7", "07", 'b"c,d', "né"])
    text = 'source,target\nann,7\n07,ann\n"b""c,d",né\n'
    assert edges_of(read(file_of(tmp_path, text), domain)) == {(0, 1), (0, 2), (3, 4)}
    path = file_of(tmp_path, edges_csv([("Ann", "7"), ("7", "007"), ("", "7"), ("ann ", "7")]))
    assert [place for place, _ in refusals(path, domain)] == [
        ("line", 2, "source"),
        ("line", 3, "target"),
        ("line", 4, "source"),
        ("line", 5, "source"),
    ]


def test_errors_never_hold_cells(tmp_path: Path) -> None:
    secret = "s3cret"
    contents = [
        edges_csv([(secret, 1)]),
        f"{secret},target\n0,1\n",
        f"source,target\n0,{secret},1\n",
        f'source,target\n0,"{secret}\n',
        f"source,target\n0,{secret}".encode() + b"\xff\n",
    ]
    for content in contents:
        with pytest.raises(InvalidRecords) as caught:
            read(file_of(tmp_path, content), graph_domain())
        assert secret not in repr((caught.value, caught.value.errors))
