"""Heads of accounts published outside the database: what shows that a ledger went backwards.

    DIR/heads.log   one line of JSON a publication, appended and synced before it counts; now and
                    then replaced by a shorter file that says the same

A chain proves that nothing inside it was changed, not that nothing was cut off its end. So every
process writes down (account, seq, head, charged) in a second place: a database that later knows
less than that has forgotten. Processes of one host may share the file.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from accounting.privacy_loss import PrivacyLoss
from storage.files.folders import make_folder, sync_folder

#: A file may have so many bytes, or so many for each account, before it is made shorter.
LONG, EACH = 2**20, 1024


@dataclass(frozen=True, slots=True)
class Published:
    """An account as it stood when it was published."""

    account: int
    seq: int
    head: bytes
    charged: PrivacyLoss


class HeadsLog:
    """One file of published heads, and what is known from it so far."""

    def __init__(self, path: Path, long: int = LONG) -> None:
        self.path, self._long = path, long
        self._forget()

    def _forget(self) -> None:
        #: The furthest state of each account that was ever published and not given up.
        self.published: dict[int, Published] = {}
        #: Accounts that an operator has accepted to be gone.
        self.gone: set[int] = set()
        #: Moments of freezes that happened while this file was the one in use, microseconds.
        self.marks: set[int] = set()
        #: Whole lines that cannot be read: a damaged file.
        self.damaged = 0
        self._read_to = 0
        self._first = b""

    def refresh(self) -> None:
        """Read what this and other processes have appended since the last look."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            first = file.readline()
            if first != self._first and _is_start(first):
                # Another file took the place of the one read so far: it says all that one said.
                self._forget()
                self._first = first
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # being written, or cut off by a crash: it was never relied on
                self._read_to += len(line)
                self._take(line)

    def publish(self, states: Iterable[Published], at_us: int) -> None:
        """Write states down; they are on disk when this returns."""
        self._append([_encode("head", state, at_us) for state in states])
        if self._is_long(self.path.stat().st_size):
            # Append-only by the will of the operator: then it grows.
            with suppress(PermissionError):
                self._compact(at_us)

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

    def _is_long(self, size: int) -> bool:
        return size > max(self._long, EACH * (len(self.published) + len(self.marks)))

    def _compact(self, at_us: int) -> None:
        """Replace a file that has grown long by one with the last state of each account."""
        with self._locked() as old:
            # Nobody appends now, so what is read here is all that was ever relied on.
            self.refresh()
            if not self._is_long(os.fstat(old).st_size):
                return  # another process was faster
            start = _checked({"kind": "start", "at": at_us, "token": secrets.token_hex(8)})
            lines = [start, *(_damaged_lines(self.path) if self.damaged else [])]
            lines += [_checked({"kind": "freeze", "at": freeze}) for freeze in sorted(self.marks)]
            for id, state in sorted(self.published.items()):
                lines.append(_encode("gone" if id in self.gone else "head", state, at_us))
            place = self.path.resolve()
            shorter = place.with_name(place.name + ".new")
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            descriptor = os.open(shorter, flags, 0o600)
            try:
                os.fchmod(descriptor, os.fstat(old).st_mode & 0o777)
                _write(descriptor, b"".join(lines))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            # Whole and on disk before it has the name: a crash leaves the one file or the other.
            os.replace(shorter, place)
            sync_folder(place.parent)
        self.refresh()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        make_folder(self.path.parent)
        fresh = not self.path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        while True:
            descriptor = os.open(self.path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # While this waited, a shorter file may have taken the name: nobody reads the old.
                if not os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    continue
                if fresh:
                    sync_folder(self.path.parent)
                yield descriptor
                return
            finally:
                os.close(descriptor)

    def _take(self, line: bytes) -> None:
        try:
            fields = _decode(line)
            if fields["kind"] == "start":
                return
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


def _is_start(line: bytes) -> bool:
    """Whether a file that begins with this line replaced a longer one."""
    with suppress(ValueError):
        return bool(_decode(line)["kind"] == "start")
    return False


def _damaged_lines(path: Path) -> Iterator[bytes]:
    """The lines that cannot be read: evidence, so they are kept."""
    with path.open("rb") as file:
        for line in file:
            try:
                _decode(line)
            except ValueError:
                if line.strip() and line.endswith(b"\n"):
                    yield line


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
