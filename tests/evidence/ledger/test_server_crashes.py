"""The PostgreSQL server crashes, and a connection is lost during COMMIT."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from storage.database.database import Database
from storage.errors import CommitUnknown, StillRunning
from storage.ledger.ledger import Reservation
from tests.support import scenes
from tests.support.blocking import BlockingLedger
from tests.support.scenes import Scene
from tests.support.servers import Server, SwallowingProxy, binaries
from tests.support.victims import Nursery
from tests.support.world import MINUTE, World, check_invariants, loss, request

pytestmark = pytest.mark.postgres


@pytest.fixture
def kind() -> str:
    return "postgresql"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    bin = binaries()
    if bin is None:
        pytest.skip("needs PostgreSQL: apt-get install postgresql")
    with Server(bin, tmp_path_factory.mktemp("server") / "cluster") as server:
        yield server


def test_the_server_is_stopped_at_once(server: Server, tmp_path: Path) -> None:
    database = Database.open(server.url, tmp_path)
    scene = Scene(World(database, tmp_path), server.url, tmp_path)
    with Nursery() as nursery:
        scenes.stop_the_server(scene, nursery, server.stop, server.start, 4)
    database.close()


class TestSwallowedCommit:
    """COMMIT reaches the server, but its reply is lost."""

    @pytest.fixture
    def proxy(self, url: str) -> Iterator[SwallowingProxy]:
        address = make_url(url)
        assert address.host is not None
        proxy = SwallowingProxy(address.host, address.port or 5432)
        yield proxy
        proxy.close()

    @pytest.fixture
    def ledger(self, url: str, proxy: SwallowingProxy, tmp_path: Path) -> Iterator[BlockingLedger]:
        """A ledger whose connections go through the proxy."""
        through = make_url(url).set(host="127.0.0.1", port=proxy.port)
        database = Database.open(through.render_as_string(hide_password=False), tmp_path)
        # Connecting commits too, so connect before the proxy swallows a COMMIT.
        database.write(lambda _connection: None)
        yield BlockingLedger(database, lease_us=MINUTE)
        database.close()

    def test_a_reserve_is_unknown_and_charged_once(
        self, world: World, ledger: BlockingLedger, proxy: SwallowingProxy
    ) -> None:
        dataset, analyst = world.ready(loss(1))
        query = request(dataset, analyst, key="k")
        proxy.arm()
        with pytest.raises(CommitUnknown):
            ledger.reserve(query)
        assert proxy.swallowed == 1
        with pytest.raises(StillRunning):
            ledger.reserve(query)
        world.lapse()
        again = ledger.reserve(query)
        assert isinstance(again, Reservation)
        assert again.attempt == 2
        assert world.charged(dataset, analyst)[0] == loss("0.1")
        check_invariants(world.database)

    def test_a_settle_looks_again_before_its_answer_leaves(
        self, world: World, ledger: BlockingLedger, proxy: SwallowingProxy
    ) -> None:
        dataset, analyst = world.ready(loss(1))
        reservation = ledger.reserve(request(dataset, analyst, key="k"))
        assert isinstance(reservation, Reservation)
        proxy.arm()
        assert ledger.settle(reservation, status=201, body=b"x", release_us=0)
        assert proxy.swallowed == 1
        assert not ledger.settle(reservation, status=201, body=b"y", release_us=0)
        check_invariants(world.database)
