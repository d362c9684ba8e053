"""Connections: who makes room for a new one, and whose time is over. Waiting takes no real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ipaddress import ip_network

import pytest

from app.http.connections import FOR_PROBES, STOP, SWEEP, Admission, Connections, Limits, Wait
from tests.support.virtual_time import VirtualTime

HEAD, STALL = 10.0, 60.0


class Recorded:
    """A connection that records how it ended."""

    def __init__(self) -> None:
        self.expired, self.aborted, self.size = 0, False, 0

    def expire(self) -> None:
        self.expired += 1

    def abort(self) -> None:
        self.aborted = True

    def unread(self) -> int:
        return self.size


def connections(total: int = 4, per_address: int = 4, proxies: tuple[str, ...] = ()) -> Connections:
    networks = tuple(ip_network(proxy) for proxy in proxies)
    return Connections(Limits(total, per_address, networks, 1000, HEAD, STALL))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    virtual = VirtualTime(monkeypatch)
    return lambda work: virtual.run(work())


def enter(all_of_them: Connections, count: int, address: str = "10.0.0.{}") -> list[Recorded]:
    entered = [Recorded() for _ in range(count)]
    for number, connection in enumerate(entered):
        admission = all_of_them.enter(connection, address.format(number))
        assert admission is Admission.EVERYTHING
    return entered


def test_the_longest_wait_makes_room(run: Callable[..., None]) -> None:
    async def play() -> None:
        guard = connections()
        first, second, third, _fourth = enter(guard, 4)
        guard.begin(first, None)
        # The first connection got its reply. From now on it waits for the next request.
        guard.begin(first, Wait.HEAD)
        guard.begin(second, Wait.BODY)
        enter(guard, 1)
        assert [one.aborted for one in (first, second, third)] == [False, False, True]
        assert guard.all.size == 4

    run(play)


def test_a_connection_that_sends_a_body_makes_room_last(run: Callable[..., None]) -> None:
    async def play() -> None:
        guard = connections(3)
        active, stalled, reader = enter(guard, 3)
        guard.begin(active, Wait.BODY)
        guard.begin(stalled, Wait.BODY)
        guard.begin(reader, Wait.READ)
        guard.begin(active, Wait.BODY)  # This client has just sent one more part of its body.
        for victim in (reader, stalled, active):
            assert not victim.aborted
            (new,) = enter(guard, 1)
            guard.begin(new, None)
            assert victim.aborted

    run(play)


def test_while_all_are_at_work_only_probes_are_reached(run: Callable[..., None]) -> None:
    async def play() -> None:
        guard = connections(2)
        for connection in enter(guard, 2):
            guard.begin(connection, None)
        probes = [Recorded() for _ in range(FOR_PROBES)]
        for probe in probes:
            assert guard.enter(probe, "10.0.0.9") is Admission.PROBES
        latest = Recorded()
        assert guard.enter(latest, "10.0.0.9") is Admission.PROBES
        assert [probe.aborted for probe in probes] == [True] + [False] * (FOR_PROBES - 1)
        for probe in (*probes[1:], latest):
            guard.begin(probe, None)
        assert guard.enter(Recorded(), "10.0.0.9") is Admission.NOTHING
        assert guard.all.size == 2
        guard.leave(latest)
        assert guard.enter(Recorded(), "10.0.0.9") is Admission.PROBES

    run(play)


def test_an_address_at_its_limit_makes_room_for_itself(run: Callable[..., None]) -> None:
    async def play() -> None:
        guard = connections(10, per_address=2)
        (other,) = enter(guard, 1, "10.0.0.1")
        own = enter(guard, 2, "10.9.9.9")
        enter(guard, 1, "10.9.9.9")
        assert (other.aborted, own[0].aborted, own[1].aborted) == (False, True, False)

    run(play)


@pytest.mark.parametrize(
    ("addresses", "together"),
    [
        (["10.0.0.1", "10.0.0.1"], True),
        (["10.0.0.1", "10.0.0.2"], False),
        (["2001:db8::1", "2001:db8::ffff:2"], True),
        (["2001:db8:0:1::1", "2001:db8:0:2::1"], False),
        (["::ffff:10.0.0.1", "10.0.0.1"], True),
        (["172.16.1.1", "172.16.1.1"], False),
        (["", ""], False),
    ],
)
def test_addresses_of_one_client_count_together(
    run: Callable[..., None], addresses: list[str], together: bool
) -> None:
    async def play() -> None:
        guard = connections(10, per_address=1, proxies=("172.16.0.0/12",))
        (first,) = enter(guard, 1, addresses[0])
        enter(guard, 1, addresses[1])
        assert first.aborted is together

    run(play)


def test_a_head_has_its_time_and_a_body_has_the_time_of_its_route(
    run: Callable[..., None],
) -> None:
    async def play() -> None:
        guard = connections()
        head, body, work, _ = enter(guard, 4)
        guard.begin(body, Wait.BODY)
        guard.begin(work, None)
        await asyncio.sleep(HEAD - 2 * SWEEP)
        ends = [head.expired]
        await asyncio.sleep(4 * SWEEP)
        ends.append(head.expired)
        assert ends[0] == 0 < ends[1]
        await asyncio.sleep(10 * STALL)
        assert (body.expired, work.expired) == (0, 0)

    run(play)


def test_a_reader_has_time_as_long_as_it_reads(run: Callable[..., None]) -> None:
    async def play() -> None:
        guard = connections()
        slow, silent = enter(guard, 2)
        for reader in (slow, silent):
            reader.size = 1000
            guard.begin(reader, Wait.READ)
        for _ in range(5):
            await asyncio.sleep(STALL / 2)
            slow.size -= 100
        assert (bool(silent.expired), slow.expired) == (True, 0)
        await asyncio.sleep(3 * STALL)
        assert slow.expired

    run(play)


def test_a_stop_waits_for_the_service_and_for_no_client(run: Callable[..., None]) -> None:
    async def play() -> None:
        guard = connections(5)
        head, reader, body, work, _ = enter(guard, 5)
        guard.begin(reader, Wait.READ)
        guard.begin(body, Wait.BODY)
        guard.begin(work, None)
        guard.stop()
        for _ in range(round(STOP / SWEEP) + 2):
            guard.begin(body, Wait.BODY)  # A client still sends, but cannot delay the stop.
            await asyncio.sleep(SWEEP)
        assert [one.aborted for one in (head, reader, body, work)] == [True, True, True, False]

    run(play)
