"""Every change of what gives a charge its meaning is a fact, and raises its row's revision."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Update, select, update

from storage.catalogue import dataset_states
from storage.catalogue.dataset_states import dataset_state, digest_of_labels, version_state
from storage.database import tables
from storage.files.arrays import write_arrays
from storage.files.manifest import DamagedFolder
from storage.journal.facts import FactKind, number_subject
from storage.people import person_facts
from storage.people.identities import Identities
from storage.people.person_facts import key_state, user_state
from tests.support.world import World, loss

Act = Callable[[World], Any]


def check_rows(world: World) -> None:
    """Each row says what its last fact says, and its revision counts its facts."""
    with world.database.read() as connection:
        facts: dict[Any, list[Any]] = {}
        j = tables.journal.c
        for row in connection.execute(select(tables.journal).order_by(j.stream, j.seq)):
            text = json.loads(row.fact)
            if "revision" in text:
                facts.setdefault((row.kind % 64, row.subject), []).append(text)
        rows: list[tuple[int, bytes, Any, Any]] = []
        for user in connection.execute(select(tables.users)):
            state = user_state(connection, user)
            rows.append((FactKind.USER, number_subject(user.id), user, state))
        keys = connection.execute(select(tables.api_key))
        rows += ((FactKind.KEY, key.id.encode(), key, key_state(key)) for key in keys)
        for dataset in connection.execute(select(tables.dataset)):
            state = dataset_state(dataset)
            rows.append((FactKind.DATASET, number_subject(dataset.id), dataset, state))
            versions = facts.get((FactKind.UNTOLD_VERSION % 64, number_subject(dataset.id)), [])
            facts[FactKind.DATASET, number_subject(dataset.id)] += versions
        for kind, subject, row, state in rows:
            own = sorted(facts[kind, subject], key=lambda text: text["revision"])
            assert [text["revision"] for text in own] == list(range(1, row.revision + 1))
            last = [text["state"] for text in own if "created_us" in text["state"]][-1]
            last.pop("nodes", None)
            assert last == json.loads(json.dumps(state, default=bytes.hex))


def admit(world: World) -> None:
    identities = Identities(world.database)
    for issued, role in ((1, "analyst"), (2, "owner")):
        identities.admit("https://provider", "ana", frozenset({role}), issued)


def withdraw(world: World) -> None:
    dataset = world.dataset()
    world.versions.withdraw(dataset.name, actor=world.owner)
    world.versions.remove_unused(dataset.name)


def revoke(world: World) -> None:
    analyst = world.analyst()
    issued = world.users.issue_key(analyst.name, actor=world.admin)
    world.users.revoke(issued.key_id, actor=world.admin)


def disable(world: World) -> None:
    analyst = world.analyst()
    world.users.update(analyst.name, disabled=True, roles=["owner"], actor=world.admin)
    world.users.update(analyst.name, disabled=False, actor=world.admin)


CHANGES: tuple[tuple[Act, FactKind, str], ...] = (
    (World.analyst, FactKind.USER, "user.create"),
    (disable, FactKind.USER, "user.update"),
    (admit, FactKind.USER, "user.roles"),
    (revoke, FactKind.KEY, "key.revoke"),
    (World.dataset, FactKind.UNTOLD_VERSION, "records.publish"),
    (withdraw, FactKind.DATASET, "records.withdraw"),
    (withdraw, FactKind.UNTOLD_VERSION, "records.remove"),
    (World.ready, FactKind.LIMIT, "budget.set"),
)


@pytest.mark.parametrize(
    ("act", "kind", "action"), CHANGES, ids=[action for _, _, action in CHANGES]
)
def test_a_change_is_a_fact_about_its_row(
    world: World, act: Act, kind: FactKind, action: str
) -> None:
    act(world)
    check_rows(world)
    with world.database.read() as connection:
        texts = select(tables.journal.c.fact).where(tables.journal.c.kind == int(kind))
        actions = [json.loads(text)["action"] for text in connection.execute(texts).scalars()]
    assert action in actions


class Unraised(Update):
    """An UPDATE that leaves the revision as it is."""

    inherit_cache = True

    def values(self, **_: Any) -> Any:  # type: ignore[override]
        return super().values(revision=self.table.c.revision)


@pytest.mark.parametrize("act", [disable, revoke, withdraw], ids=["user", "key", "dataset"])
def test_a_change_that_raises_no_revision_is_caught(
    world: World, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    for module in (person_facts, dataset_states):
        monkeypatch.setattr(module, "update", Unraised)
    act(world)
    with pytest.raises(AssertionError):
        check_rows(world)


def test_a_version_states_its_manifest(world: World) -> None:
    dataset = world.dataset(ready=False)
    upload = world.versions.begin_upload(dataset.name, actor=world.owner)
    staging = world.files.staging_folder(dataset.id)
    staging.mkdir()
    world.versions.publish(upload, staging, actor=world.owner, manifest=bytes(range(32)))
    with world.database.read() as connection:
        kind = tables.journal.c.kind == int(FactKind.UNTOLD_VERSION)
        text = connection.execute(select(tables.journal.c.fact).where(kind)).scalar_one()
        row = connection.execute(select(tables.dataset_version)).one()
    state = json.loads(text)["state"]
    assert state["manifest_digest"] == bytes(range(32)).hex()
    assert version_state(row)["manifest_digest"] == bytes(range(32))


def test_only_the_manifest_that_was_published_opens(world: World) -> None:
    dataset = world.dataset(ready=False)
    upload = world.versions.begin_upload(dataset.name, actor=world.owner)
    staging = world.files.staging_folder(dataset.id)
    arrays = {"indptr": np.zeros(5, np.int64), "indices": np.zeros(0, np.int64)}
    write_arrays(staging, "graph", arrays)
    world.versions.publish(upload, staging, actor=world.owner, manifest=bytes(32))
    (row,) = world.versions.needed()
    with pytest.raises(DamagedFolder, match="the manifest is not the one that was published"):
        world.versions.open(row)
    # A version that an earlier release published has no digest of its manifest. Its first opening
    # records the digest in the journal, and later ones record nothing.
    nothing = update(tables.dataset_version).values(manifest_digest=None)
    world.database.write(lambda connection: connection.execute(nothing))
    for facts in (2, 2):
        (row,) = world.versions.needed()
        world.versions.open(row)
        assert world.versions.opened.get(dataset.id, 1) is not None
        (row,) = world.versions.needed()
        assert row.manifest_digest == world.versions.opened.manifest(dataset.id, 1)
        with world.database.read() as connection:
            kind = tables.journal.c.kind == int(FactKind.UNTOLD_VERSION)
            texts = connection.execute(select(tables.journal.c.fact).where(kind)).scalars().all()
        assert len(texts) == facts
        assert sum(row.manifest_digest.hex() in text for text in texts) == 1


def test_a_freeze_and_limits_are_facts(world: World) -> None:
    dataset, analyst = world.ready(loss(1))
    world.grant(dataset, analyst, loss(2))
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    with world.database.read() as connection:
        kind = tables.journal.c.kind == int(FactKind.LIMIT)
        stored = connection.execute(select(tables.journal).where(kind)).all()
    texts = [json.loads(row.fact) for row in stored]
    assert {row.subject for row in stored} == {number_subject(account.id)}
    assert [text["state"]["limits"][0] for text in texts] == [10**9, 2 * 10**9]
    assert texts[-1]["revision"] == account.seq


def test_node_lists_differ_by_their_names_and_their_cuts() -> None:
    assert len({digest_of_labels(labels) for labels in (["ab", "c"], ["a", "bc"], [1, 2])}) == 3
