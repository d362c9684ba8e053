"""Heads of accounts published outside the database, as evidence that a ledger went backwards.

    DIR/heads.log   one line of JSON per published state, appended and synced before it counts;
                    a long file is replaced by a shorter one with the same content

The hash chain of an account proves that no entry inside it was changed, but not that its last
entries are present. So every process also writes the number of entries, the head and the charged
amount of each account to this file, to a copy of it, and to a command. A database that is behind
one of the files has lost entries.
"""

from collections.abc import Iterable
from pathlib import Path

from storage.assurance.head_lines import (
    HeadsContent,
    Published,
    StreamHeads,
    Verified,
    checked,
    freeze_lines,
    merged,
    state_line,
    streams_line,
)
from storage.assurance.heads_file import LONG, HeadsFile

__all__ = ["HeadsLog", "Published"]


class HeadsLog:
    """The published heads of one ledger: a file, and a second one if ``copy`` names it.

    Both files together count: the further state of each account. A file that lacks lines of the
    other gets them at the next publication.
    """

    def __init__(self, path: Path, copy: Path | None = None, long: int = LONG) -> None:
        self.path, self.copy = path, copy
        self._files = [HeadsFile(one, long) for one in (path, copy) if one is not None]
        self._content = HeadsContent()

    @property
    def published(self) -> dict[int, Published]:
        """The furthest published state of each account that no operator has superseded."""
        return self._content.published

    @property
    def gone(self) -> set[int]:
        """Accounts that the database lacks, after an operator has accepted their loss."""
        return self._content.gone

    @property
    def marks(self) -> set[int]:
        """The moments of the freezes whose lost charges the files have, microseconds since 1970."""
        return self._content.marks

    @property
    def damaged(self) -> list[bytes]:
        """Complete lines that cannot be read. They stay in their file as evidence."""
        return self._content.damaged

    @property
    def verified(self) -> dict[int, Verified]:
        """The state of each account up to which a verification has found its chain valid."""
        return self._content.verified

    @property
    def whole_us(self) -> int | None:
        """When the last whole verification without a bad row began; None if none did."""
        return self._content.whole_us

    @property
    def streams(self) -> StreamHeads:
        """The published heads of the streams that no other stream named."""
        return self._content.streams

    @property
    def verified_streams(self) -> StreamHeads:
        """The fact of each stream up to which a verification has found it valid."""
        return self._content.verified_streams

    @property
    def exist(self) -> bool:
        """True if a file holds heads of this ledger, or says that it began empty."""
        return self._content.began is not None

    @property
    def present(self) -> dict[int, Published]:
        """The published states of the accounts that are not gone."""
        return {id: state for id, state in self.published.items() if id not in self.gone}

    def refresh(self) -> None:
        """Read the lines that this and other processes have appended since the last call."""
        for file in self._files:
            file.refresh()
        contents = [file.content for file in self._files]
        self._content = contents[0] if len(contents) == 1 else merged(contents)

    def begin(self, at_us: int) -> None:
        """Record that the ledger had no account at the moment ``at_us``, microseconds."""
        self._append([checked({"kind": "began", "at": at_us})])

    def publish(
        self, states: Iterable[Published], at_us: int, streams: StreamHeads | None = None
    ) -> None:
        """Append states at the moment ``at_us``, microseconds. They are on disk on return.

        A file that lost lines, or lacks those of the other, gets them too. Raises: OSError; then
        the next call appends what a file lacks.
        """
        lines = [state_line("head", state, at_us) for state in states]
        if streams is not None and streams != self.streams:
            lines.append(streams_line("streams", streams, at_us))
        failure: OSError | None = None
        for file in self._files:
            try:
                file.append(file.missing(self._content, at_us) + lines, at_us)
            except OSError as error:
                # The error is raised after the loop, because the other file of heads must still get
                # its lines.
                failure = failure or error
        self.refresh()
        if failure is not None:
            raise failure

    def accept(
        self,
        states: Iterable[Published],
        gone: Iterable[Published],
        at_us: int,
        streams: StreamHeads | None = None,
    ) -> None:
        """Supersede the published states: accounts continue from ``states``, others are ``gone``.

        ``streams`` supersede the published heads of streams.

        The database lacks the accounts ``gone``. Their charges stay in the file, because a later
        account may get the same number.
        """
        accepted = [state_line("accepted", state, at_us) for state in states]
        if streams is not None:
            accepted.append(streams_line("accepted-streams", streams, at_us))
        self._append(accepted + [state_line("gone", state, at_us) for state in gone])

    def mark(self, freezes_us: Iterable[int]) -> None:
        """Record the moments of freezes whose lost charges the files have, in microseconds."""
        self._append(freeze_lines(freezes_us))

    def verify(
        self,
        states: Iterable[Verified],
        at_us: int,
        whole: bool,
        streams: StreamHeads | None = None,
    ) -> None:
        """Record the states up to which a verification that began at ``at_us`` found no bad row."""
        verified = {state.account: state for state in states}
        later = HeadsContent(
            verified=verified,
            verified_streams=dict(streams or {}),
            whole_us=at_us if whole else None,
        )
        self._append(self._content.lacking(later, at_us))

    def _append(self, lines: list[bytes]) -> None:
        for file in self._files:
            file.append(lines)
        self.refresh()
