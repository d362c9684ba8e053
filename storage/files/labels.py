"""The public names of a graph's nodes, in the order of the node numbers.

A list may have a million names, so it is stored as arrays in a folder and memory-mapped: integers
as an array, texts as UTF-8 bytes with offsets. Names stay integers or texts as registered.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from storage.files.arrays import open_arrays, write_arrays

Label = TypeVar("Label")
DECIMAL = re.compile(r"-?[0-9]{1,40}")


class NodeNumbers:
    """Nodes without names: the numbers 0 … count − 1."""

    def __init__(self, count: int) -> None:
        self._count = count

    def codes(self, names: Any) -> NDArray[np.int32]:
        """The node numbers of an Arrow array of integers or strings; −1 for a name of no node."""
        numbers, valid = as_integers(names)
        valid &= (numbers >= 0) & (numbers < self._count)
        return np.where(valid, numbers, -1).astype(np.int32)


class _Labels(Sequence[Label]):
    """The base of sequences that read labels from the disk one by one."""

    @abstractmethod
    def _label(self, node: int) -> Label: ...

    @overload
    def __getitem__(self, index: int) -> Label: ...
    @overload
    def __getitem__(self, index: slice) -> list[Label]: ...
    def __getitem__(self, index: int | slice) -> Label | list[Label]:
        nodes = range(len(self))[index]
        return self._label(nodes) if isinstance(nodes, int) else [self._label(i) for i in nodes]

    def __iter__(self) -> Iterator[Label]:
        return map(self._label, range(len(self)))


class IntegerLabels(_Labels[int]):
    """Node names that are distinct integers of 64 bits.

    ``order``: the positions of ``values`` in ascending order of their values, int32.
    """

    kind: ClassVar = "integer_labels"

    def __init__(self, values: NDArray[np.int64], order: NDArray[np.int32]) -> None:
        self._values, self._order = values, order

    @classmethod
    def of(cls, labels: Iterable[int]) -> IntegerLabels:
        """Labels in memory. Raises: ValueError for a repeated or non-integer label."""
        listed = labels if isinstance(labels, np.ndarray) else list(labels)
        if not isinstance(listed, np.ndarray) and any(type(label) is not int for label in listed):
            raise ValueError("node labels are all integers or all strings")
        try:
            values = np.asarray(listed, np.int64)
        except OverflowError:
            raise ValueError("integer node labels have at most 64 bits") from None
        order = np.argsort(values, kind="stable").astype(np.int32)
        if np.any(np.diff(values[order]) == 0):
            raise ValueError("a node label is listed twice")
        return cls(values, order)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"values": self._values, "order": self._order}

    def __len__(self) -> int:
        return len(self._values)

    def _label(self, node: int) -> int:
        return int(self._values[node])

    def codes(self, names: Any) -> NDArray[np.int32]:
        numbers, valid = as_integers(names)
        if not len(self):
            return np.full(len(numbers), -1, np.int32)
        ranks = np.searchsorted(self._values, numbers, sorter=self._order)
        nodes = self._order[np.minimum(ranks, len(self) - 1)]
        valid &= self._values[nodes] == numbers
        return np.where(valid, nodes, np.int32(-1)).astype(np.int32)


class TextLabels(_Labels[str]):
    """Node names that are distinct strings, whose UTF-8 bytes are joined in ``text``.

    Label i is ``text[offsets[i]:offsets[i + 1]]``. For n labels ``offsets`` has n + 1 numbers.
    """

    kind: ClassVar = "text_labels"

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self._text, self._offsets = text, offsets

    @classmethod
    def of(cls, labels: Iterable[str]) -> TextLabels:
        """Labels in memory. Raises: ValueError for a repeated or non-text label."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            array = labels if isinstance(labels, pa.Array) else pa.array(labels, pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
            raise ValueError("node labels are all integers or all strings") from None
        array = array.cast(pa.large_string())
        if array.null_count:
            raise ValueError("node labels are all integers or all strings")
        if pc.count_distinct(array).as_py() != len(array):
            raise ValueError("a node label is listed twice")
        if array.offset or not len(array):
            array = pa.concat_arrays([array, pa.array([], pa.large_string())])
        _, offsets, text = array.buffers()
        ends = np.zeros(1, np.int64)
        if len(array):
            ends = np.frombuffer(offsets, np.int64)[: len(array) + 1]
        # Arrow has no buffer of texts if all labels are empty, so an empty array stands for it. A
        # buffer may also be longer than its texts, so the rest of it is cut off.
        content = np.frombuffer(text, np.uint8) if text else np.zeros(0, np.uint8)
        return cls(content[: ends[-1]], ends)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"text": self._text, "offsets": self._offsets}

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def codes(self, names: Any) -> NDArray[np.int32]:
        import pyarrow as pa
        import pyarrow.compute as pc

        labels = pa.LargeStringArray.from_buffers(
            len(self), pa.py_buffer(self._offsets), pa.py_buffer(self._text)
        )
        indices = pc.index_in(names.cast(pa.large_string()), value_set=labels)
        # No list of labels has a missing name. So a missing name gets the code −1, as an unknown
        # name does.
        codes: NDArray[np.int32] = indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return codes

    def _label(self, node: int) -> str:
        return bytes(self._text[self._offsets[node] : self._offsets[node + 1]]).decode()


NodeLabels = IntegerLabels | TextLabels
NodeIndex = NodeNumbers | NodeLabels
Labels = Sequence[int] | Sequence[str]


class DistantLabels(_Labels[Any]):
    """Node names in an object store, which the first use fetches; their number is known before.

    Reading a name may wait for the store and may raise StoreFailed. The next reader tries again.
    """

    def __init__(self, length: int, fetch: Callable[[], NodeLabels]) -> None:
        self._length, self._fetch = length, fetch
        self._here: NodeLabels | None = None
        self._lock = Lock()

    @property
    def at_hand(self) -> bool:
        """True if the names were fetched, so that reading one does not wait for the store."""
        return self._here is not None

    def here(self) -> NodeLabels:
        """The fetched list of names. Raises: StoreFailed."""
        if self._here is None:
            with self._lock:
                if self._here is None:
                    self._here = self._fetch()
        return self._here

    def __len__(self) -> int:
        return self._length

    def _label(self, node: int) -> Any:
        return self.here()[node]


def node_labels(labels: Labels) -> NodeLabels:
    """The names as a class that also finds the node number of a name.

    Raises: ValueError if names are repeated, or are a mixture of integers and strings.
    """
    if isinstance(labels, DistantLabels):
        return labels.here()
    if isinstance(labels, IntegerLabels | TextLabels):
        return labels
    if len(labels) and isinstance(labels[0], str):
        return TextLabels.of(labels)  # type: ignore[arg-type]  # checked by Arrow, name by name
    return IntegerLabels.of(labels)  # type: ignore[arg-type]  # checked there, name by name


def node_index(nodes: int, labels: Labels | None) -> NodeIndex:
    """Finds the numbers of a graph's nodes: by name if nodes have names, else by number."""
    return NodeNumbers(nodes) if labels is None else node_labels(labels)


def write_labels(folder: Path, labels: Labels) -> None:
    """Write names to the new ``folder``. Raises: ValueError as ``node_labels``; FileExistsError."""
    listed = node_labels(labels)
    write_arrays(folder, listed.kind, listed.arrays())


def open_labels(folder: Path) -> NodeLabels:
    """The names in a folder, memory-mapped. Raises: FileNotFoundError; DamagedFolder."""
    kind, arrays = open_arrays(folder, IntegerLabels.kind, TextLabels.kind)
    return IntegerLabels(**arrays) if kind == IntegerLabels.kind else TextLabels(**arrays)


def as_integers(names: Any) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Names as 64-bit integers, and a mask of the valid ones; the others are 0."""
    import pyarrow as pa

    if pa.types.is_integer(names.type):
        if pa.types.is_uint64(names.type):  # numbers from 2⁶³ on do not fit, so they are invalid
            names = names.cast(pa.decimal128(20, 0)).cast(pa.string())
        else:
            valid = np.asarray(names.is_valid())
            return names.fill_null(0).cast(pa.int64()).to_numpy(zero_copy_only=False), valid
    numbers = np.zeros(len(names), np.int64)
    valid = np.zeros(len(names), np.bool_)
    for i, text in enumerate(names.to_pylist()):
        if text is not None and DECIMAL.fullmatch(text) and -(2**63) <= int(text) < 2**63:
            numbers[i], valid[i] = int(text), True
    return numbers, valid
