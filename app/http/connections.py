"""The connections of one process: their limits, and which one makes room for a new one.

Danger: whoever opens connections without a key must not shut out others. So a new connection is
always accepted while another one waits for its client: the one that has waited longest is closed.
Only when the service works for every connection does a new one reach nothing but the probes.

Connections wait in the order in which their waits began. So the one that makes room, and those
whose time is over, are always the first ones, and no request costs more than a few dictionary
operations. Sockets and HTTP are in ``app.http.protocol``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Protocol

from app.config.settings import Network

#: The number of connections that are accepted beyond the limit. They may request only the probes
#: ``/healthz`` and ``/readyz``.
FOR_PROBES = 16
#: Seconds between two searches for connections whose client was too slow.
SWEEP = 0.5
#: After the signal to stop, clients have this many seconds to finish. Then the connections that
#: still wait for their clients are closed.
STOP = 2.0


class Wait(IntEnum):
    """What a connection waits for from its client, in the order in which waits make room."""

    HEAD = 0
    """A request, or the rest of its headers."""
    READ = 1
    """That the client reads the reply."""
    BODY = 2
    """The rest of a body. The wait begins anew with every part that arrives."""


class Admission(Enum):
    """What a new connection may reach."""

    EVERYTHING = "everything"
    PROBES = "probes"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Limits:
    """The limits of a process. Bytes are those of one head: request line, headers, trailers."""

    connections: int
    per_address: int
    proxies: Sequence[Network]
    head_bytes: int
    head_seconds: float
    stall_seconds: float


def client_of(address: str, proxies: Sequence[Network]) -> str | None:
    """The client that an address counts for; None for a proxy and for what is no IP address.

    A client commands all IPv6 addresses of its network of 64 bits, so these count together.
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return None
    if isinstance(ip, IPv6Address):
        ip = ip.ipv4_mapped or ip
    if any(ip in network for network in proxies):
        return None
    return str(ip) if isinstance(ip, IPv4Address) else str(IPv6Network((int(ip), 64), False))


class Connection(Protocol):
    """What ``Connections`` needs of a connection."""

    def expire(self) -> None:
        """End the connection because its client was too slow. May be called repeatedly."""

    def abort(self) -> None:
        """Close the socket immediately, without sending what is left."""

    def unread(self) -> int:
        """The bytes of replies that the client has not read yet."""


class Group:
    """Connections under one limit, and the waiting ones by the beginning of their waits."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self.waiting: dict[Wait, OrderedDict[Connection, float]] = {
            wait: OrderedDict() for wait in Wait
        }

    def longest_waiting(self) -> Connection | None:
        """The connection that makes room: the kind of wait decides, then its length."""
        for waiting in self.waiting.values():
            if waiting:
                return next(iter(waiting))
        return None


@dataclass(eq=False, slots=True)
class _Member:
    """The groups of one connection, its present wait, and what was unread when that began."""

    groups: tuple[Group, ...]
    wait: Wait | None = None
    unread: int = 0


class Connections:
    """All connections of one event loop. Only that loop may call this."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.all, self.probes = Group(limits.connections), Group(FOR_PROBES)
        self._clients: dict[str, Group] = {}
        self._members: dict[Connection, _Member] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._stops_at: float | None = None
        # The time that a body may take to arrive is limited by the routes and not here. Only they
        # can still send a reply when that time is over.
        self._seconds = {Wait.HEAD: limits.head_seconds, Wait.READ: limits.stall_seconds}

    def enter(self, connection: Connection, address: str) -> Admission:
        """Count a new connection, which waits for a request. Closes another to make room."""
        groups = self._groups(address)
        if all(self._has_room(group) for group in groups):
            admission = Admission.EVERYTHING
        elif self._has_room(self.probes):
            groups, admission = (self.probes,), Admission.PROBES
        else:
            return Admission.NOTHING
        self._members[connection] = _Member(groups)
        for group in groups:
            group.size += 1
        self.begin(connection, Wait.HEAD)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP, self._sweep)
        return admission

    def leave(self, connection: Connection) -> None:
        """Stop counting a connection. Calls after the first have no effect."""
        member = self._members.pop(connection, None)
        if member is None:
            return
        for group in member.groups:
            group.size -= 1
            if member.wait is not None:
                del group.waiting[member.wait][connection]

    def begin(self, connection: Connection, wait: Wait | None) -> None:
        """Begin a wait for the client, or end it with None while the service works."""
        member = self._members.get(connection)
        if member is None or (member.wait is wait and wait is not Wait.BODY):
            return
        now = asyncio.get_running_loop().time()
        for group in member.groups:
            if member.wait is not None:
                del group.waiting[member.wait][connection]
            if wait is not None:
                group.waiting[wait][connection] = now
        member.wait = wait
        if wait is Wait.READ:
            member.unread = connection.unread()

    def stop(self) -> None:
        """Close every connection that waits for its client in ``STOP`` seconds or later."""
        if self._stops_at is None:
            self._stops_at = asyncio.get_running_loop().time() + STOP

    def _groups(self, address: str) -> tuple[Group, ...]:
        """The groups of a new connection. That of its address is first, so it makes room first."""
        client = client_of(address, self.limits.proxies)
        if client is None:
            return (self.all,)
        if len(self._clients) > 2 * self.limits.connections:
            self._clients = {name: group for name, group in self._clients.items() if group.size}
        if client not in self._clients:
            self._clients[client] = Group(self.limits.per_address)
        return (self._clients[client], self.all)

    def _has_room(self, group: Group) -> bool:
        """True if one more connection fits; the longest waiting one is closed if need be."""
        if group.size < group.limit:
            return True
        connection = group.longest_waiting()
        if connection is None:
            return False
        self._close(connection)
        return True

    def _sweep(self) -> None:
        """End the connections whose time is over."""
        now = asyncio.get_running_loop().time()
        for group in (self.all, self.probes):
            if self._stops_at is not None and now >= self._stops_at:
                for waiting in group.waiting.values():
                    for connection in list(waiting):
                        self._close(connection)
            else:
                self._end_late(group, now)
        again = asyncio.get_running_loop().call_later
        self._timer = again(SWEEP, self._sweep) if self._members else None

    def _end_late(self, group: Group, now: float) -> None:
        for wait, seconds in self._seconds.items():
            for connection, since in list(group.waiting[wait].items()):
                if since + seconds > now:
                    break
                if wait is Wait.HEAD or not self._has_read(connection):
                    connection.expire()

    def _has_read(self, connection: Connection) -> bool:
        """True if the client has read something since its wait began; then it begins anew."""
        if connection.unread() >= self._members[connection].unread:
            return False
        self.begin(connection, None)
        self.begin(connection, Wait.READ)
        return True

    def _close(self, connection: Connection) -> None:
        # The event loop closes the socket only later. The connection no longer counts from here on,
        # so that another one can take its place.
        self.leave(connection)
        connection.abort()
