"""Heads of accounts published outside the database: what shows that a ledger went backwards.

    DIR/heads.log   one line of JSON a publication, only ever appended to, synced before it counts

A chain proves that nothing inside it was changed, not that nothing was cut off its end. So every
process writes down (account, seq, head, charged) in a second place: a database that later knows
less than that has forgotten. Processes of one host may share the file.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from accounting.privacy_loss import PrivacyLoss
from storage.folders import make_folder, sync_folder


@dataclass(frozen=True, slots=True)
class Published:
    """An account as it stood when it was published."""

    account: int
    seq: int
    head: bytes
    charged: PrivacyLoss


class HeadsLog:
    """One file of published heads, and what is known from it so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: The furthest state of each account that was ever published and not given up.
        self.published: dict[int, Published] = {}
        #: Accounts that an operator has accepted to be gone.
        self.gone: set[int] = set()
        #: Moments of freezes that happened while this file was the one in use, microseconds.
        self.marks: set[int] = set()
        #: Whole lines that cannot be read: a damaged file.
        self.damaged = 0
        self._read_to = 0

    def refresh(self) -> None:
        """Read what this and other processes have appended since the last look."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # being written, or cut off by a crash: it was never relied on
                self._read_to += len(line)
                self._take(line)

    def publish(self, states: Iterable[Published], at_us: int) -> None:
        """Write states down; they are on disk when this returns."""
        self._append([_encode("head", state, at_us) for state in states])

    def accept(self, states: Iterable[Published], gone: Iterable[Published], at_us: int) -> None:
        """Give up what was published: accounts go on from ``states``, and some are gone.

        What was charged to those stays known, should their number ever be given again.
        """
        accepted = [_encode("accepted", state, at_us) for state in states]
        self._append(accepted + [_encode("gone", state, at_us) for state in gone])

    def mark(self, freezes_us: Iterable[int]) -> None:
        """Say that the file knows what was charged after these freezes."""
        self._append([_checked({"kind": "freeze", "at": at_us}) for at_us in sorted(freezes_us)])

    def _append(self, lines: list[bytes]) -> None:
        if not lines:
            return
        with self._locked() as descriptor:
            size = os.fstat(descriptor).st_size
            # What a crash cut off becomes a line of its own, so that it cannot spoil the next one.
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            _write(descriptor, (b"\n" if torn else b"") + b"".join(lines))
            os.fsync(descriptor)
        self.refresh()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        make_folder(self.path.parent)
        fresh = not self.path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(self.path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if fresh:
                sync_folder(self.path.parent)
            yield descriptor
        finally:
            os.close(descriptor)

    def _take(self, line: bytes) -> None:
        try:
            fields = _decode(line)
            if fields["kind"] == "freeze":
                self.marks.add(fields["at"])
                return
            charged = PrivacyLoss(fields["epsilon_nano"], fields["delta_atto"])
            head = bytes.fromhex(fields["head"])
            state = Published(fields["account"], fields["seq"], head, charged)
            kind = fields["kind"]
        except (ValueError, KeyError, TypeError):
            self.damaged += bool(line.strip())
            return
        known = self.published.get(state.account)
        # Two processes may write out of order: only further states replace what is known.
        if kind == "accepted" or known is None or state.seq > known.seq:
            self.published[state.account] = state
        if kind == "gone":
            self.gone.add(state.account)
        elif kind == "accepted":
            self.gone.discard(state.account)


def read_heads(path: Path) -> dict[int, Published]:
    """The furthest published state of every account in a file, but for those accepted to be gone.

    Raises: FileNotFoundError.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    log = HeadsLog(path)
    log.refresh()
    return {id: state for id, state in log.published.items() if id not in log.gone}


def _encode(kind: str, state: Published, at_us: int) -> bytes:
    return _checked(
        {
            "kind": kind,
            "account": state.account,
            "seq": state.seq,
            "head": state.head.hex(),
            "epsilon_nano": state.charged.epsilon_nano,
            "delta_atto": state.charged.delta_atto,
            "at": at_us,
        }
    )


def _checked(fields: dict[str, Any]) -> bytes:
    """A line that tells by its own sum whether it is whole."""
    text = json.dumps(fields, separators=(",", ":")).encode()
    return text[:-1] + b',"sum":"' + sha256(text).hexdigest()[:16].encode() + b'"}\n'


def _decode(line: bytes) -> dict[str, Any]:
    text, _, sum = line.rstrip(b"\n").rpartition(b',"sum":"')
    if sha256(text + b"}").hexdigest()[:16].encode() + b'"}' != sum:
        raise ValueError("the line is damaged")
    fields: dict[str, Any] = json.loads(text + b"}")
    return fields


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
