"""Published heads hide the records: nobody confirms a guess of them by a head.

The attacker knows all records but one edge, every public fact, every instant and two heads of a
stream: the one before a version was published and the one after. Prepared arrays are a function of
the records. So an unsalted digest of them would let the attacker try every neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from secrets import token_bytes

import numpy as np
import pytest
from sqlalchemy import select

from storage.assurance.head_lines import decoded
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.database import tables
from storage.journal.layouts import fact_digest, next_head, salted_digest
from tests.support.world import World

NODES = 12
KNOWN = tuple((node, node + 1) for node in range(NODES - 1))
SECRET = (2, 9)
NEIGHBOURS = [edge for edge in combinations(range(NODES), 2) if edge not in KNOWN]


def arrays(edge: tuple[int, int]) -> bytes:
    """The prepared arrays of the records, the same bytes at every preparation."""
    edges = sorted((*KNOWN, edge))
    return bytes(np.array(edges, dtype="<i4").tobytes())


def plain(content: bytes) -> bytes:
    return sha256(content).digest()


def salted(content: bytes) -> bytes:
    return salted_digest(token_bytes(32), content)


def published_heads(path: Path) -> list[tuple[int, int, bytes]]:
    """What the attacker reads in a copy of heads.log: stream, number of facts and head."""
    lines = [decoded(line) for line in path.read_bytes().splitlines()]
    streams = [line["streams"] for line in lines if line["kind"] == "streams"]
    return [(stream, seq, bytes.fromhex(head)) for ((stream, seq, head),) in streams]


def neighbours_named(world: World, heads: list[tuple[int, int, bytes]]) -> list[tuple[int, int]]:
    """The neighbours with which the facts between the two heads lead from one to the other."""
    (stream, first, before), (_, last, after) = heads
    j = tables.journal.c
    between = select(tables.journal).where(j.stream == stream, j.seq > first, j.seq <= last)
    with world.database.read() as connection:
        facts = connection.execute(between.order_by(j.seq)).all()
    # An attacker knows everything in these facts but the digest of the manifest, which depends on
    # the records.
    (stated,) = {part[:64] for fact in facts for part in fact.fact.split('"manifest_digest":"')[1:]}
    matching = []
    for edge in NEIGHBOURS:
        head = before
        for fact in facts:
            text = fact.fact.replace(stated, plain(arrays(edge)).hex()).encode()
            digest = fact_digest(
                stream, fact.at_us, fact.kind, fact.actor, bytes(fact.subject), text
            )
            head = next_head(head, digest)
        if head == after:
            matching.append(edge)
    return matching


@pytest.mark.parametrize(("digest", "named"), [(plain, [SECRET]), (salted, [])])
def test_a_neighbour_is_named_from_two_heads_unless_digests_are_salted(
    world: World,
    tmp_path: Path,
    digest: Callable[[bytes], bytes],
    named: list[tuple[int, int]],
) -> None:
    stored = world.dataset(ready=False)
    log = HeadsLog(tmp_path / "heads.log")
    log.begin(1)
    publisher = Publisher(world.database, log)
    publisher.look()
    upload = world.versions.begin_upload(stored.name, actor=world.owner)
    staging = world.files.staging_folder(stored.id)
    staging.mkdir()
    manifest = digest(arrays(SECRET))
    world.versions.publish(upload, staging, actor=world.owner, manifest=manifest)
    publisher.look()
    assert neighbours_named(world, published_heads(log.path)) == named
