"""Every order of the real steps: no state violates I1 to I6, but with each seeded bug one does.

Two replicas, and three in the slow run, two crashes (of a process, or of a connection during
COMMIT), two keys and room for one charge. The account counts in ρ as well, because every statement
moves all measures; the slow run repeats the search for accounts of ε alone. Leases expire at any
moment, also under a holder that runs. Every path is finite, because the leases of a query expire
twice: there are about 19,000 states, and with three replicas 100,000. The steps are those of
SQLite, whose transactions are serial. ``test_races`` and ``test_kills`` test those of PostgreSQL.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import seeded
from tests.support.interleaving import (
    ONE_EACH_IN_RHO,
    ONE_IN_RHO,
    Explorer,
    Violation,
)
from tests.support.seeded import Seed

#: Maps each seeded (purposely inserted) bug to the first violation that the search finds, at the
#: end of a shortest path.
SEEDS: dict[Seed, str] = {
    seeded.no_fencing: 'assert fact["attempt"] == row.attempt',
    seeded.no_guard: "only the CHECK constraint stopped it",
    seeded.released_and_running: "assert account.charged_eps_n == ",
    seeded.head_of_its_own: "assert (e.seq, e.digest, e.head) == ",
    seeded.no_ending: "assert facts.keys() == {",
    seeded.two_endings: "only the CHECK constraint stopped it",
    seeded.stream_advanced_twice: "only the CHECK constraint stopped it",
    seeded.refund_on_lapse: "assert account.charged_eps_n == ",
    seeded.reply_before_commit: "I3: an attempt has no charge",
    seeded.release_by_anyone: 'assert fact["attempt"] == row.attempt',
    seeded.charge_at_settle: "assert account.charged_eps_n == ",
}
#: Maps each seeded bug of accounts that count in ρ (zCDP) to the first violation that the search
#: finds.
SEEDS_IN_RHO: dict[Seed, str] = {
    seeded.rho_of_one_arm: "assert account.charged_rho_f >= ",
    seeded.rho_refunded_twice: "only the CHECK constraint stopped it",
    seeded.rho_recomputed_at_release: "only the CHECK constraint stopped it",
    seeded.unpriced_by_epsilon: "only the CHECK constraint stopped it",
}


@pytest.mark.parametrize(
    ("in_rho", "replicas", "least"),
    [
        pytest.param(True, 2, 18_000, id="rho"),
        pytest.param(False, 2, 18_000, marks=pytest.mark.slow, id="epsilon"),
        pytest.param(False, 3, 90_000, marks=pytest.mark.slow, id="epsilon-3"),
    ],
)
def test_no_order_of_steps_violates_an_invariant(
    tmp_path: Path, in_rho: bool, replicas: int, least: int
) -> None:
    """Where ρ counts, one charge fits by ε and the other, which has no finite ε, by ρ."""
    explorer = Explorer(tmp_path, ONE_IN_RHO, ONE_EACH_IN_RHO) if in_rho else Explorer(tmp_path)
    graph = explorer.explore(replicas=replicas, crashes=2)
    print(f"{graph.states} states, {graph.steps} steps between them, {graph.run} run")
    assert graph.states > least
    reached = {(key, state, attempt, status) for key, state, attempt, _, _, status in graph.queries}
    for key in ("a", "b"):
        assert (key, 2, 1, None) in reached, "released"
        assert {(key, 0, attempt, None) for attempt in (1, 2, 3)} <= reached
        assert {(key, 1, attempt, 201) for attempt in (1, 2, 3)} <= reached
    # The search must see the leases of two attempts expire, both while the holder runs and after it
    # died.
    assert {(attempt, alive) for _, state, attempt, alive, _, _ in graph.queries if state == 0} == {
        *((attempt, alive) for attempt in (1, 2) for alive in (0, 1)),
        (3, 1),
    }


@pytest.mark.parametrize("seed", SEEDS_IN_RHO, ids=lambda seed: seed.__name__)
def test_a_seeded_bug_is_found_where_rho_counts(
    seed: Seed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explorer = Explorer(tmp_path, ONE_IN_RHO, ONE_EACH_IN_RHO)
    seed(explorer.world, monkeypatch)
    with pytest.raises(Violation) as violation:
        explorer.explore(replicas=2, crashes=1)
    print(violation.value)
    assert SEEDS_IN_RHO[seed] in str(violation.value)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.__name__)
def test_a_seeded_bug_is_found(seed: Seed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = Explorer(tmp_path)
    seed(explorer.world, monkeypatch)
    with pytest.raises(Violation) as violation:
        explorer.explore(replicas=2, crashes=1)
    print(violation.value)
    assert SEEDS[seed] in str(violation.value)
