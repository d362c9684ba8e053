"""Node names: stored in their type and order, indexed, read from a file of lines."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import InvalidRecords, TooLarge
from storage.files.labels import NodeNumbers, node_labels, open_labels, write_labels
from storage.ingest.node_list import read_node_list

INTEGERS = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, unique=True)
TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, unique=True)


@given(labels=INTEGERS | TEXTS)
def test_labels_are_a_sequence_that_finds(labels: list[int] | list[str]) -> None:
    names = node_labels(labels)
    assert list(names) == labels
    assert [type(label) for label in names] == [type(label) for label in labels]
    assert (len(names), names[-1], names[:2]) == (len(labels), labels[-1], labels[:2])
    type_ = pa.int64() if isinstance(labels[0], int) else pa.string()
    assert names.codes(pa.array(labels, type_)).tolist() == list(range(len(labels)))
    for index in (len(labels), -len(labels) - 1):
        with pytest.raises(IndexError):
            names[index]
    with pytest.raises(ValueError):
        node_labels([*labels, labels[0]])  # type: ignore[list-item]


@pytest.mark.parametrize("labels", [[5, -3, 2**62, 0], ["b", "a", "", "né", "a b"]])
def test_round_trip(tmp_path: Path, labels: list[int] | list[str]) -> None:
    write_labels(tmp_path / "nodes", labels)
    opened = open_labels(tmp_path / "nodes")
    assert list(opened) == labels
    names = pa.array([labels[2], labels[0]])
    assert opened.codes(names).tolist() == [2, 0]
    # Node labels that were opened from a file can be written to another file.
    write_labels(tmp_path / "again", opened)
    assert list(open_labels(tmp_path / "again")) == labels


def test_codes_of_strangers() -> None:
    integers = node_labels([7, 3])
    assert integers.codes(pa.array([3, 4, None, 7, -3])).tolist() == [1, -1, -1, 0, -1]
    assert integers.codes(pa.array(["3", "x", None, "07", "9" * 30])).tolist() == [1, -1, -1, 0, -1]
    assert integers.codes(pa.array([2**64 - 1, 3], pa.uint64())).tolist() == [-1, 1]
    texts = node_labels(["7", "b"])
    assert texts.codes(pa.array(["b", None, "B", "7"])).tolist() == [1, -1, -1, 0]
    assert texts.codes(pa.array([7, 1])).tolist() == [0, -1]
    assert NodeNumbers(3).codes(pa.array([2, 3, -1, 0])).tolist() == [2, -1, -1, 0]
    for index in (integers, texts, NodeNumbers(3)):
        assert index.codes(pa.array([], pa.int64())).dtype == np.int32


@pytest.mark.parametrize(
    "labels", [[1, "a"], ["a", 1], [1, 2.0], [1, True], [True], [None], [2**63], ["a", None],
               ["\ud800"]],
)  # fmt: skip
def test_no_labels(labels: Sequence[object]) -> None:
    with pytest.raises(ValueError):
        node_labels(labels)  # type: ignore[arg-type]


def test_slices_of_arrow_arrays_are_labels_of_their_own() -> None:
    whole = pa.array(["a", "bb", "c", "dd"], pa.large_string())
    from storage.files.labels import TextLabels

    part = TextLabels.of(whole[1:3])
    assert list(part) == ["bb", "c"]
    assert part.codes(pa.array(["c", "a", "bb"])).tolist() == [1, -1, 0]


def listed(folder: Path, content: str | bytes, **options: int | bool) -> list[int] | list[str]:
    path = folder / "nodes.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read_node_list(path, **options))  # type: ignore[arg-type,return-value]


def test_node_lists(tmp_path: Path) -> None:
    assert listed(tmp_path, "3\n-1\n0\n9223372036854775807\n") == [3, -1, 0, 2**63 - 1]
    assert listed(tmp_path, "\ufeff3\r\n1") == [3, 1]
    # If one node name is not an integer in its usual form, all names of the list are texts.
    for odd in ("01", "-0", "+1", "1.0", "9223372036854775808", "x", " 1"):
        assert listed(tmp_path, f"3\n{odd}\n") == ["3", odd]
    assert listed(tmp_path, '"a,b"\nné\n"say ""hi"""\n') == ["a,b", "né", 'say "hi"']
    assert listed(tmp_path, gzip.compress(b"3\n1\n"), gzipped=True) == [3, 1]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", [None]),
        ("a\n\nb\n", [2]),
        ("a\n  \nb\n", [2]),
        ('a\n""\nb\n', [2]),
        ("a\nb\na\nb\nc\n", [3, 4]),
        ("1\n2\n1\n", [3]),
        ("a\nb,c\n", [2]),
        ("a\nb\tc\nd\x1b[31m\n", [2, 3]),
        ("a\nb\u2028c\n\x85\n", [2, 3]),
        ("a\n" + "x" * 257 + "\n" + "é" * 256, [2]),
        (b"a\nb\0\n", [2]),
        (b"a\n\xff\n", [2]),
        ('a\n"b\nc"\n', [2]),
        (b"a" * 3 * 2**20, [1]),
    ],
)
def test_refused_node_lists(tmp_path: Path, content: str | bytes, lines: list[int | None]) -> None:
    with pytest.raises(InvalidRecords) as caught:
        listed(tmp_path, content)
    lines_of_errors = [place[1] if len(place) > 1 else None for place, _, _ in caught.value.errors]
    assert sorted(set(lines_of_errors[: len(lines)]), key=str) == lines


def test_limits_of_node_lists(tmp_path: Path) -> None:
    assert len(listed(tmp_path, "1\n2\n3\n", most=3, limit=6)) == 3
    with pytest.raises(TooLarge):
        listed(tmp_path, "1\n2\n3\n", most=2)
    with pytest.raises(TooLarge):
        listed(tmp_path, "1\n2\n3\n", limit=5)


def test_a_million_names_take_seconds(tmp_path: Path) -> None:
    for prefix in ("", "n"):
        content = "\n".join(f"{prefix}{7 * i}" for i in range(1_000_000))
        (tmp_path / "nodes.csv").write_text(content)
        start = process_time()
        names = read_node_list(tmp_path / "nodes.csv")
        write_labels(tmp_path / f"nodes{prefix}", names)
        opened = open_labels(tmp_path / f"nodes{prefix}")
        assert opened.codes(pa.array([f"{prefix}6999993", "x"])).tolist() == [999_999, -1]
        # To read and write a million node names takes about a second. An algorithm of quadratic
        # time would take hours.
        assert process_time() - start < 60
