"""GraphML and node-link JSON: what NetworkX writes comes back; documents that bite do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from storage.errors import TooLarge, UnsupportedMediaType
from storage.ingest import CodedGraph
from tests.support.uploads import file_of, graph_domain, read, refusals, table_domain

GRAPHML, JSON = "application/graphml+xml", "application/json"
NAMESPACE = 'xmlns="http://graphml.graphdrawing.org/xmlns"'


def document(folder: Path, graph: Any, media_type: str) -> Path:
    if media_type == GRAPHML:
        return file_of(folder, "\n".join(nx.generate_graphml(graph)))
    return file_of(folder, json.dumps(nx.node_link_data(graph)))


def neighbours(coded: object, node: int) -> list[int]:
    assert isinstance(coded, CodedGraph)
    neighbours: list[int] = coded.indices[coded.indptr[node] : coded.indptr[node + 1]].tolist()
    return neighbours


@pytest.mark.parametrize("media_type", [GRAPHML, JSON])
@pytest.mark.parametrize("seed", range(3))
def test_what_networkx_writes_comes_back(tmp_path: Path, media_type: str, seed: int) -> None:
    graph = nx.gnp_random_graph(30, 0.15, seed=seed)
    graph.graph["title"] = "ignored"
    nx.set_node_attributes(graph, {n: n / 7 for n in graph}, "weight")
    nx.set_edge_attributes(graph, "x<y>&", "kind")
    coded = read(document(tmp_path, graph, media_type), graph_domain(32), media_type)
    for node in graph:
        assert neighbours(coded, node) == sorted(graph[node])
    assert neighbours(coded, 31) == []


@pytest.mark.parametrize("media_type", [GRAPHML, JSON])
def test_labels(tmp_path: Path, media_type: str) -> None:
    graph = nx.les_miserables_graph()
    labels = sorted(graph)
    coded = read(document(tmp_path, graph, media_type), graph_domain(77, labels=labels), media_type)
    for place, name in enumerate(labels):
        assert [labels[i] for i in neighbours(coded, place)] == sorted(graph[name])
    numbers = [10 * node for node in range(34)]
    club = nx.relabel_nodes(nx.karate_club_graph(), lambda node: 10 * node)
    path = document(tmp_path, club, media_type)
    assert neighbours(read(path, graph_domain(34, labels=numbers), media_type), 11) == [0]


@pytest.mark.parametrize("media_type", [GRAPHML, JSON])
def test_graphs_outside_the_domain(tmp_path: Path, media_type: str) -> None:
    def types(graph: Any, nodes: int = 10, max_degree: int | None = None) -> set[str]:
        path = document(tmp_path, graph, media_type)
        return {type for _, type in refusals(path, graph_domain(nodes, max_degree), media_type)}

    assert types(nx.path_graph(11)) == {"unknown_node"}
    assert types(nx.Graph([(0, 1), (2, 2)])) == {"self_loop"}
    assert types(nx.star_graph(4), max_degree=3) == {"degree"}
    assert types(nx.DiGraph([(0, 1)])) == {"not_simple"}
    multi = nx.MultiGraph([(0, 1), (1, 0)])
    assert types(multi) == ({"duplicate_edge"} if media_type == GRAPHML else {"not_simple"})
    isolated = nx.empty_graph(3)
    isolated.add_node(99)
    assert types(isolated) == {"unknown_node"}


def test_graphml_places_are_lines(tmp_path: Path) -> None:
    graph = f"<graphml {NAMESPACE}>\n<graph edgedefault='undirected'>\n<node id='0'/>\n"
    tail = "</graph>\n</graphml>"
    for body, expected in (
        ("<node id='x'/>\n", (("line", 4), "unknown_node")),
        ("<edge source='0'\n target='12'/>\n", (("line", 4, "target"), "unknown_node")),
        ("\n<edge source='3' target='3'/>\n", (("line", 5), "self_loop")),
        (
            "<edge source='0' target='1'/>\n<edge source='1' target='0'/>",
            (("line", 5), "duplicate_edge"),
        ),
        ("<edge source='0'/>\n", (("line", 4), "graphml")),
        ("<node/>\n", (("line", 4), "graphml")),
        ("<hyperedge><endpoint node='0'/></hyperedge>\n", (("line", 4), "graphml")),
        ("<node id='1'><graph edgedefault='undirected'/></node>", (("line", 4), "graphml")),
        ("<edge source='0' target='1'>\n", (("line", 5), "graphml")),
        ("<a>" * 40 + "</a>" * 40, (("line", 4), "graphml")),
        ("&nbsp;", (("line", 4), "graphml")),
        (
            "<edge source='0' target='1' directed='true'/>",
            (("upload",), "graphml"),
        ),
    ):
        path = file_of(tmp_path, graph + body + tail)
        assert refusals(path, graph_domain(), GRAPHML) == [expected], body


LAUGHS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 20))


@pytest.mark.parametrize(
    ("text", "type"),
    [
        (f'<!DOCTYPE g [<!ENTITY a0 "ha">{LAUGHS}]><graphml>&a19;</graphml>', "graphml"),
        ('<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]><graphml>&x;</graphml>', "graphml"),
        ('<!DOCTYPE g SYSTEM "http://127.0.0.1:1/x.dtd"><graphml/>', "graphml"),
        ("<!DOCTYPE graphml><graphml><graph edgedefault='undirected'/></graphml>", "graphml"),
        ("<?xml version='1.0' encoding='utf-16'?><graphml/>", "encoding"),
        ("<?xml version='1.0' encoding='iso-8859-1'?><graphml/>", "encoding"),
        ("<!DOCTYPE graphml><graphml/>".encode("utf-16"), "graphml"),
        ("<graphml/>", "graphml"),
        (f"<graphml {NAMESPACE}><graph/><graph/></graphml>", "graphml"),
        ("<svg/>", "graphml"),
        ("", "graphml"),
        ("source,target\n0,1\n", "graphml"),
        (b"\xff\xfe\0\0", "graphml"),
        ("<graphml>" * 100_000, "graphml"),
        (
            f"<graphml {NAMESPACE}><key id='k' for='node' attr.name='n' attr.type='int'/>"
            "<graph edgedefault='undirected'>"
            f"<node id='0'><data key='k'>{'9' * 10_000}</data></node></graph></graphml>",
            "graphml",
        ),
    ],
)
def test_xml_that_bites(tmp_path: Path, text: str | bytes, type: str) -> None:
    errors = refusals(file_of(tmp_path, text), graph_domain(), "application/xml")
    assert [kind for _, kind in errors] == [type]


def test_node_link_places(tmp_path: Path) -> None:
    nodes = [{"id": i} for i in range(3)]
    for links, expected in (
        ([{"source": 0, "target": 1}, {"source": 1, "target": 12}], ("link", 2, "target")),
        ([{"source": 2, "target": 2}], ("link", 1)),
        ([{"source": 0, "target": 1}, {"source": 1, "target": 0}], ("link", 2)),
        ([{"source": 0, "target": True}], ("link", 1, "target")),
        ([{"source": 0.0, "target": 1}], ("link", 1, "source")),
        ([{"source": "0", "target": 1}], ("link", 1, "source")),
        ([{"source": 0}], ("link", 1, "target")),
        ([{"source": 0, "target": 10**30}], ("link", 1, "target")),
        ([[0, 1]], ("link", 1, "source")),
    ):
        for key in ("links", "edges"):
            path = file_of(tmp_path, json.dumps({"nodes": nodes, key: links}))
            assert [place for place, _ in refusals(path, graph_domain(), JSON)] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", "0", '{"nodes": 1, "links": []}', '{"nodes": [], "links": {}}',
        '{"nodes": []}', '{"nodes": [{"id": NaN}], "links": []}', '{"nodes": [1], "links": []}',
        '{"nodes": [{"id": null}], "links": []}', '{"nodes": [{"id": [0]}], "links": []}',
        '{"nodes": [], "links": [], "directed": 0}', '{"nodes": [], "links": [], "x": Infinity}',
        '{"nodes": [], "links": [], "multigraph": "no"}', "[" * 10**6, '{"a":' * 500_000,
        '{"nodes": [{"id": ' + "9" * 10_000 + '}], "links": []}', '{"nodes": [], "links": [],}',
        '{"nodes": [{"id": "\\ud800"}], "links": []}', "source,target\n0,1\n", b"\xff\xfe{}",
        b'{"nodes": [\xff], "links": []}',
    ],
)  # fmt: skip
def test_json_that_bites(tmp_path: Path, text: str | bytes) -> None:
    assert refusals(file_of(tmp_path, text), graph_domain(), JSON)
    assert refusals(file_of(tmp_path, text), graph_domain(2, labels=["a", "b"]), JSON)


def test_documents_are_bounded_and_for_graphs_alone(tmp_path: Path) -> None:
    for media_type in (GRAPHML, JSON):
        path = document(tmp_path, nx.path_graph(4), media_type)
        with pytest.raises(TooLarge):
            read(path, graph_domain(), media_type, document_bytes=path.stat().st_size - 1)
        with pytest.raises(UnsupportedMediaType):
            read(path, table_domain(), media_type)
        with pytest.raises(UnsupportedMediaType):
            read(path, graph_domain(), media_type, gzipped=True)


@pytest.mark.parametrize(
    "media_type",
    ["", "text/plain", "text", "text/csv; charset=latin-1", "application/gzip", "text/csv,x", "\n"],
)
def test_other_media_types(tmp_path: Path, media_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        read(file_of(tmp_path, "source,target\n"), graph_domain(), media_type)


def test_media_types_may_have_parameters(tmp_path: Path) -> None:
    path = file_of(tmp_path, "source,target\n0,1\n")
    for media_type in (
        "Text/CSV",
        "text/csv; charset=UTF-8",
        'text/csv;header=present;charset="utf-8"',
    ):
        assert neighbours(read(path, graph_domain(), media_type), 0) == [1]
