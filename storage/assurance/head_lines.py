"""The lines of a file of published heads, and what all lines of a file say together.

A line is one JSON object that ends with its own checksum. The checksum finds torn and damaged
lines; it is no signature. A line that cannot be read stays in the file as evidence.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Self

from accounting.account import Limit
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss

#: For each stream of the journal, by its number: the number of its last fact, and its head, the
#: hash of that fact in the chain.
StreamHeads = Mapping[int, tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Published:
    """The state of an account when it was published; ``seq`` is the number of its last entry.

    ``limits``: one number per measure, and what limits have besides; empty in a line of an earlier
    version.
    """

    account: int
    seq: int
    head: bytes
    charged: PrivacyLoss
    limits: tuple[int, ...] = ()

    @classmethod
    def of(cls, account: int, seq: int, head: bytes, *amounts: int) -> Self:
        """The state of an account with these ``amounts``: its sums, and then its limits."""
        sums, limits = amounts[: len(MEASURES)], amounts[len(MEASURES) :]
        return cls(account, seq, head, PrivacyLoss(*sums), limits)

    @property
    def in_rho(self) -> bool:
        """True if the account had a limit in ρ: it was then charged all its ρ before."""
        return any(self.limits[2:3])

    @property
    def limit(self) -> Limit:
        """The limit that ``limits`` state; lines of earlier versions end with δ_c."""
        return Limit.read((*self.limits, 0)[:5])


@dataclass(frozen=True, slots=True)
class Verified:
    """An account up to an entry at which a verification found its whole chain valid.

    The amounts have one number per measure. ``carried``: the first charge of an account over all
    datasets. ``recharged``: the charges of unfreezes. ``opened_us``: when the account was opened.
    ``uncounted``: the ρ of the charges so far that were not counted in ρ, in femto-ρ.
    """

    account: int
    seq: int
    head: bytes
    charged: tuple[int, ...]
    limit: tuple[int, ...]
    carried: tuple[int, ...]
    recharged: tuple[int, ...]
    frozen: int
    opened_us: int
    uncounted: int


@dataclass
class HeadsContent:
    """What the lines of one file, or of several, say together.

    ``published``: the furthest state of each account that no operator has superseded.
    ``gone``: accounts that the database lacks, after an operator has accepted their loss.
    ``marks``: the moments of freezes whose lost charges these lines have, microseconds since 1970.
    ``began``: the first moment at which the heads of this ledger were known, microseconds; None
    if the lines hold no heads at all. ``damaged``: lines that cannot be read.
    ``streams``: the last fact of each stream of the journal that no other stream named at the
    moment ``streams_us``. ``verified_streams``: the last fact up to which each was found valid.
    ``verified``: the state of each account up to which its chain was found valid. ``whole_us``:
    when the last whole verification without a bad row began, microseconds; None if none did.
    """

    published: dict[int, Published] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    marks: set[int] = field(default_factory=set)
    began: int | None = None
    damaged: list[bytes] = field(default_factory=list)
    verified: dict[int, Verified] = field(default_factory=dict)
    whole_us: int | None = None
    streams: StreamHeads = field(default_factory=dict)
    streams_us: int = 0
    verified_streams: dict[int, tuple[int, bytes]] = field(default_factory=dict)

    def take(self, line: bytes) -> None:
        """Adds one line. A later line supersedes an earlier one as its kind says."""
        if not line.strip():
            return
        try:
            fields = decoded(line)
            self._take(fields["kind"], fields["at"], fields)
        except (ValueError, KeyError, TypeError):
            self.damaged.append(line)

    def _take(self, kind: str, at_us: int, fields: dict[str, Any]) -> None:
        if kind == "start":
            return
        if kind == "freeze":
            self.marks.add(at_us)
            return
        if kind == "began":
            self._begin(at_us)
            return
        if kind == "whole":
            self._whole(at_us)
            return
        if kind == "verified":
            # Lines about verified accounts that earlier versions of the service wrote lack an
            # amount in ρ and are ignored. So the next verification of these accounts begins at
            # their first entry.
            if "uncounted" in fields:
                self._verify(_verified(fields))
            return
        if kind in ("streams", "accepted-streams", "verified-streams"):
            self._take_streams(kind, at_us, _streams(fields))
            return
        # Lines about heads that earlier versions of the service wrote lack the limits of the
        # account, and the oldest also lack its charges in ρ. Defaults stand for the missing fields.
        more = fields.get("rho_femto", 0), fields.get("unpriced", 0)
        charged = PrivacyLoss(fields["epsilon_nano"], fields["delta_atto"], *more)
        head, limits = bytes.fromhex(fields["head"]), tuple(fields.get("limits", ()))
        state = Published(fields["account"], fields["seq"], head, charged, limits)
        self._begin(at_us)
        last = self.published.get(state.account)
        # Processes may write their lines out of order, so a later state of the account is never
        # replaced. Only an accepted rollback may go back to an earlier state.
        if kind == "accepted" or last is None or state.seq > last.seq:
            self.published[state.account] = state
        if kind in ("accepted", "gone"):
            # After an accepted rollback the chain continues from another entry, and a new account
            # may get the number of a lost one. So earlier results of verification for this account
            # are dropped.
            self.verified.pop(state.account, None)
        if kind == "gone":
            self.gone.add(state.account)
        elif kind == "accepted":
            self.gone.discard(state.account)

    def _begin(self, at_us: int) -> None:
        self.began = at_us if self.began is None else min(self.began, at_us)

    def _whole(self, at_us: int) -> None:
        self.whole_us = at_us if self.whole_us is None else max(self.whole_us, at_us)

    def _verify(self, state: Verified) -> None:
        last = self.verified.get(state.account)
        if last is None or state.seq > last.seq:
            self.verified[state.account] = state

    def _take_streams(self, kind: str, at_us: int, streams: StreamHeads) -> None:
        if kind == "verified-streams":
            for stream, (seq, head) in streams.items():
                if seq > self.verified_streams.get(stream, (0, b""))[0]:
                    self.verified_streams[stream] = seq, head
            return
        if kind == "accepted-streams":
            # After an accepted rollback, new streams get the numbers of lost ones. So earlier
            # results of the verification of streams are dropped.
            self.verified_streams.clear()
        elif at_us < self.streams_us:
            return  # another process wrote this line late, so newer heads of the streams stay
        self.streams, self.streams_us = dict(streams), at_us

    def lacking(self, other: HeadsContent, at_us: int) -> list[bytes]:
        """The lines that ``other`` says and these lines do not, written at ``at_us``."""
        lines = []
        if self.began is None and other.began is not None:
            lines.append(checked({"kind": "began", "at": other.began}))
        lines += freeze_lines(other.marks - self.marks)
        for id, state in sorted(other.published.items()):
            own = self.published.get(id)
            if own is None or state.seq > own.seq:
                lines.append(state_line("gone" if id in other.gone else "head", state, at_us))
        for id, verified in sorted(other.verified.items()):
            before = self.verified.get(id)
            if before is None or verified.seq > before.seq:
                lines.append(verified_line(verified, at_us))
        if other.streams_us > self.streams_us:
            lines.append(streams_line("streams", other.streams, other.streams_us))
        if later := {
            stream: (seq, head)
            for stream, (seq, head) in other.verified_streams.items()
            if seq > self.verified_streams.get(stream, (0, b""))[0]
        }:
            lines.append(streams_line("verified-streams", later, at_us))
        if other.whole_us is not None and (self.whole_us or 0) < other.whole_us:
            lines.append(checked({"kind": "whole", "at": other.whole_us}))
        return lines

    def merge(self, other: HeadsContent) -> None:
        """Adds what ``other`` says. The further state of each account remains."""
        if other.began is not None:
            self._begin(other.began)
        if other.whole_us is not None:
            self._whole(other.whole_us)
        if other.streams_us > self.streams_us:
            self.streams, self.streams_us = dict(other.streams), other.streams_us
        self._take_streams("verified-streams", 0, other.verified_streams)
        self.marks |= other.marks
        for verified in other.verified.values():
            self._verify(verified)
        for id, state in other.published.items():
            own = self.published.get(id)
            if own is None or state.seq > own.seq:
                self.published[id] = state
                (self.gone.add if id in other.gone else self.gone.discard)(id)


def merged(contents: Iterable[HeadsContent]) -> HeadsContent:
    """What several files say together, with the damaged lines of all of them."""
    whole = HeadsContent()
    for content in contents:
        whole.merge(content)
        whole.damaged += content.damaged
    return whole


def state_line(kind: str, state: Published, at_us: int) -> bytes:
    """The line of one account's state; ``kind`` is head, accepted or gone."""
    fields = {"kind": kind, "account": state.account, "seq": state.seq, "head": state.head.hex()}
    limits = {"limits": state.limits} if state.limits else {}
    return checked({**fields, **asdict(state.charged), **limits, "at": at_us})


def verified_line(state: Verified, at_us: int) -> bytes:
    """The line of an account whose chain was found valid at the moment ``at_us``."""
    fields = {**asdict(state), "head": state.head.hex()}
    return checked({"kind": "verified", **fields, "at": at_us})


def _verified(fields: dict[str, Any]) -> Verified:
    return Verified(
        account=fields["account"],
        seq=fields["seq"],
        head=bytes.fromhex(fields["head"]),
        charged=tuple(fields["charged"]),
        # Lines that earlier versions of the service wrote lack the permission of releases without a
        # finite ε. No account had it then, so its value is 0.
        limit=tuple((*fields["limit"], 0)[:5]),
        carried=tuple(fields["carried"]),
        recharged=tuple(fields["recharged"]),
        frozen=fields["frozen"],
        opened_us=fields["opened_us"],
        uncounted=fields["uncounted"],
    )


def streams_line(kind: str, streams: StreamHeads, at_us: int) -> bytes:
    """The line of streams; ``kind`` is streams, accepted-streams or verified-streams."""
    listed = [[stream, seq, head.hex()] for stream, (seq, head) in sorted(streams.items())]
    return checked({"kind": kind, "streams": listed, "at": at_us})


def _streams(fields: dict[str, Any]) -> StreamHeads:
    return {stream: (seq, bytes.fromhex(head)) for stream, seq, head in fields["streams"]}


def freeze_lines(freezes_us: Iterable[int]) -> list[bytes]:
    """The lines that mark freezes, at their moments in microseconds."""
    return [checked({"kind": "freeze", "at": at_us}) for at_us in sorted(freezes_us)]


def whole_file(content: HeadsContent, at_us: int) -> Iterator[bytes]:
    """The lines of a new file with this content. The first line differs from every other file's."""
    yield checked({"kind": "start", "at": at_us, "token": secrets.token_hex(8)})
    yield from content.damaged
    yield from HeadsContent().lacking(content, at_us)


def is_start(line: bytes) -> bool:
    """True for the first line of a file that replaced a longer one."""
    with suppress(ValueError):
        return bool(decoded(line)["kind"] == "start")
    return False


def checked(fields: dict[str, Any]) -> bytes:
    """The fields as one line of JSON that ends with its own checksum."""
    text = json.dumps(fields, separators=(",", ":")).encode()
    return text[:-1] + b',"sum":"' + sha256(text).hexdigest()[:16].encode() + b'"}\n'


def decoded(line: bytes) -> dict[str, Any]:
    """The fields of a line. Raises: ValueError if the line is damaged."""
    text, _, sum = line.rstrip(b"\n").rpartition(b',"sum":"')
    if sha256(text + b"}").hexdigest()[:16].encode() + b'"}' != sum:
        raise ValueError("the line is damaged")
    fields: dict[str, Any] = json.loads(text + b"}")
    return fields
