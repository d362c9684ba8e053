"""A progress bar on a terminal; without a terminal nothing is printed."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self, TextIO

WIDTH = 24


class Progress:
    """A bar on one line of ``stream`` (stderr), which is cleared at the end.

    ``show``: True or False, or None to show it on a terminal only.
    """

    def __init__(
        self, label: str, *, show: bool | None = None, stream: TextIO | None = None
    ) -> None:
        self._label, self._stream = label, stream or sys.stderr
        self.visible = self._stream.isatty() if show is None else show
        self._drawn = 0

    def seconds(self, elapsed: float, expected: float) -> None:
        """Show the elapsed seconds and the seconds after which the query may end next."""
        self._draw(elapsed, expected, f"{elapsed:.1f} of {expected:.1f} s")

    def bytes(self, sent: int, total: int) -> None:
        """Show how much of a file is sent."""
        self._draw(sent, total, f"{sent / 1e6:.1f} of {total / 1e6:.1f} MB")

    def note(self, text: str) -> None:
        """Show a text instead of a bar."""
        self._write(f"{self._label}  {text}")

    def _draw(self, done: float, whole: float, text: str) -> None:
        full = WIDTH if whole <= 0 else min(WIDTH, int(WIDTH * done / whole))
        self._write(f"{self._label}  [{'#' * full}{'.' * (WIDTH - full)}]  {text}")

    def _write(self, line: str) -> None:
        if self.visible:
            self._stream.write("\r" + line.ljust(self._drawn))
            self._stream.flush()
            self._drawn = len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
