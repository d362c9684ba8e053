"""Heads of accounts published outside the database, as evidence that a ledger went backwards.

    DIR/heads.log   one line of JSON per published state, appended and synced before it counts;
                    a long file is replaced by a shorter one with the same content

The hash chain of an account proves that no entry inside it was changed, but not that its last
entries are present. So every process also writes the number of entries, the head and the charged
amount of each account to this file. A database that is behind the file has lost entries. Processes
of one host may share the file.
"""

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
from storage.files.folders import create_file, make_folder, sync

#: A file is compacted above ``LONG`` bytes, and above ``EACH`` bytes per account and freeze.
LONG, EACH = 2**20, 1024


@dataclass(frozen=True, slots=True)
class Published:
    """The state of an account when it was published; ``seq`` is the number of its last entry."""

    account: int
    seq: int
    head: bytes
    charged: PrivacyLoss


class HeadsLog:
    """One file of published heads, and the states read from it so far."""

    def __init__(self, path: Path, long: int = LONG) -> None:
        self.path, self._long = path, long
        self._forget()

    def _forget(self) -> None:
        #: The furthest published state of each account that no operator has superseded.
        self.published: dict[int, Published] = {}
        #: Accounts that the database lacks, after an operator has accepted their loss.
        self.gone: set[int] = set()
        #: Freezes after whose charges this file was written: their moments in microseconds.
        self.marks: set[int] = set()
        #: Complete lines that cannot be read. They stay in the file as evidence.
        self.damaged: list[bytes] = []
        self._read_to = 0
        self._first = b""

    def refresh(self) -> None:
        """Read the lines that this and other processes have appended since the last call."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            first = file.readline()
            if first != self._first and _is_start(first):
                # A shorter file with the same content has replaced the file.
                self._forget()
                self._first = first
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # a writer has not finished the line or crashed: no caller relied on it
                self._read_to += len(line)
                self._take(line)

    def publish(self, states: Iterable[Published], at_us: int) -> None:
        """Append states at the moment ``at_us``, microseconds. They are on disk on return."""
        self._append([_encode("head", state, at_us) for state in states])
        if self._is_long(self.path.stat().st_size):
            # If an operator has made the file append-only, it cannot be replaced and grows.
            with suppress(PermissionError):
                self._compact(at_us)

    def accept(self, states: Iterable[Published], gone: Iterable[Published], at_us: int) -> None:
        """Supersede the published states: accounts continue from ``states``, others are ``gone``.

        The database lacks the accounts ``gone``. Their charges stay in the file, because a later
        account may get the same number.
        """
        accepted = [_encode("accepted", state, at_us) for state in states]
        self._append(accepted + [_encode("gone", state, at_us) for state in gone])

    def mark(self, freezes_us: Iterable[int]) -> None:
        """Record that this file has the charges after these freezes, microseconds since 1970."""
        self._append([_checked({"kind": "freeze", "at": at_us}) for at_us in sorted(freezes_us)])

    def _append(self, lines: list[bytes]) -> None:
        if not lines:
            return
        with self._locked() as descriptor:
            size = os.fstat(descriptor).st_size
            # An incomplete line is ended first, so that it cannot damage the next one.
            torn = size and os.pread(descriptor, 1, size - 1) != b"\n"
            _write(descriptor, (b"\n" if torn else b"") + b"".join(lines))
            os.fsync(descriptor)
        self.refresh()

    def _is_long(self, size: int) -> bool:
        return size > max(self._long, EACH * (len(self.published) + len(self.marks)))

    def _compact(self, at_us: int) -> None:
        """Replace a long file by one with the last state of each account."""
        with self._locked() as old:
            # The lock excludes other writers, so this reads all lines that count.
            self.refresh()
            if not self._is_long(os.fstat(old).st_size):
                return  # another process has already replaced the file by a shorter one
            start = _checked({"kind": "start", "at": at_us, "token": secrets.token_hex(8)})
            lines = [start, *self.damaged]
            lines += [_checked({"kind": "freeze", "at": freeze}) for freeze in sorted(self.marks)]
            for id, state in sorted(self.published.items()):
                lines.append(_encode("gone" if id in self.gone else "head", state, at_us))
            place = self.path.resolve()
            shorter = place.with_name(place.name + ".new")
            shorter.unlink(missing_ok=True)
            with create_file(shorter) as out:
                os.fchmod(out.fileno(), os.fstat(old).st_mode & 0o777)
                _write(out.fileno(), b"".join(lines))
            sync(shorter)
            # Synced before the rename, so a crash leaves the old file or the new one.
            os.replace(shorter, place)
            sync(place.parent)
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
                # A shorter file may have replaced this one meanwhile: no process reads the old.
                if not os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    continue
                if fresh:
                    sync(self.path.parent)
                yield descriptor
                return
            finally:
                os.close(descriptor)

    def _take(self, line: bytes) -> None:
        try:
            fields = _decode(line)
            kind = fields["kind"]
            if kind == "freeze":
                self.marks.add(fields["at"])
            if kind in ("start", "freeze"):
                return
            charged = PrivacyLoss(fields["epsilon_nano"], fields["delta_atto"])
            head = bytes.fromhex(fields["head"])
            state = Published(fields["account"], fields["seq"], head, charged)
        except (ValueError, KeyError, TypeError):
            if line.strip():
                self.damaged.append(line)
            return
        last = self.published.get(state.account)
        # Processes may write out of order, so only a later state replaces another.
        if kind == "accepted" or last is None or state.seq > last.seq:
            self.published[state.account] = state
        if kind == "gone":
            self.gone.add(state.account)
        elif kind == "accepted":
            self.gone.discard(state.account)


def read_heads(path: Path) -> dict[int, Published]:
    """The furthest published state of every account in a file, without accounts that are gone.

    Raises: FileNotFoundError.
    """
    if not path.is_file():
        raise FileNotFoundError(path)
    log = HeadsLog(path)
    log.refresh()
    return {id: state for id, state in log.published.items() if id not in log.gone}


def _is_start(line: bytes) -> bool:
    """True for the first line of a file that replaced a longer one."""
    with suppress(ValueError):
        return bool(_decode(line)["kind"] == "start")
    return False


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
    """The fields as one line of JSON that ends with its own checksum."""
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
