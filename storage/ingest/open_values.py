"""Numbers the values of an open attribute while batches are read, and sorts them at the end.

Only the owner learns how many there are: a refusal goes to the owner alone.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.open_domain import MOST_VALUES, OpenAttribute, OpenValues
from storage.files.growing_array import GrowingArray
from storage.ingest.refusals import WHOLE, refuse

#: The most characters that one value of an open attribute may have.
LONGEST = 256
_BLOCK = 1 << 20


class OpenColumn:
    """The values of one open attribute, each with a code in the order of its first cell."""

    def __init__(self, attribute: OpenAttribute) -> None:
        self._attribute = attribute
        self._codes: dict[str, int] = {}

    def codes(self, texts: list[str | None]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The code of each text, and which are refused: a null without a text, or a long one.

        Raises: InvalidRecords if there are more different values than ``MOST_VALUES``.
        """
        codes, refused = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
        for place, text in enumerate(texts):
            value = self._attribute.missing if text is None else text
            if value is None or len(value) > LONGEST:
                refused[place] = True
                continue
            codes[place] = self._codes.setdefault(value, len(self._codes))
        if len(self._codes) > MOST_VALUES:
            name = self._attribute.name
            refuse(WHOLE, "values", f"column {name} has more than {MOST_VALUES} different values")
        return codes, refused

    def sorted(
        self, column: NDArray[Any], scratch: Path | None
    ) -> tuple[NDArray[np.int32], OpenValues]:
        """The column with codes in the order of the values' bytes, and the values."""
        # A column without rows gets the empty text as its only value, because searches in the
        # values need at least one.
        numbered = self._codes or {"": 0}
        texts = sorted((text.encode(), code) for text, code in numbered.items())
        rank = np.empty(len(texts), np.int32)
        rank[[code for _, code in texts]] = np.arange(len(texts), dtype=np.int32)
        ranked = GrowingArray(scratch, np.dtype(np.int32))
        for start in range(0, len(column), _BLOCK):
            ranked.append(rank[column[start : start + _BLOCK]])
        content = np.frombuffer(b"".join(text for text, _ in texts), np.uint8)
        ends = np.cumsum([len(text) for text, _ in texts], dtype=np.int64)
        return ranked.array(), OpenValues(content, ends)
