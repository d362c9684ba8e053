"""Every order of the real steps: no state violates I1 to I6, but with each seeded bug one does.

Three replicas, two crashes (of a process, or of a connection during COMMIT), two keys and room for
one charge; leases lapse at any moment, also under a holder that lives. Each way ends: a query has
three attempts. About 240,000 states; the steps are those of SQLite, whose transactions follow one
another. What happens inside a transaction of PostgreSQL is for ``test_races`` and ``test_kills``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import seeded
from tests.support.interleaving import Explorer, Violation
from tests.support.seeded import Seed

#: Each with what it first shows as, by the shortest way there.
SEEDS: dict[Seed, str] = {
    seeded.no_fencing: "assert settled == {",
    seeded.no_state_check: "only the second wall stopped it",
    seeded.no_guard: "only the second wall stopped it",
    seeded.released_and_running: "assert account.charged_eps_n == ",
    seeded.head_of_its_own: "assert (e.seq, e.digest, e.head) == ",
    seeded.no_settlement: "assert settled == {",
    seeded.refund_on_lapse: "assert account.charged_eps_n == ",
    seeded.reply_before_commit: "I3: nothing is charged for who may open",
    seeded.release_by_anyone: "I3: records were opened, and the charge does not stand",
    seeded.charge_at_settle: "assert account.charged_eps_n == ",
}


def test_no_order_of_steps_violates_an_invariant(tmp_path: Path) -> None:
    found = Explorer(tmp_path).explore(replicas=3, crashes=2)
    print(f"{found.states} states, {found.steps} steps between them, {found.run} run")
    assert found.states > 200_000
    reached = {(key, state, attempt, status) for key, state, attempt, _, _, status in found.queries}
    for key in ("a", "b"):
        assert (key, 2, 1, None) in reached, "released"
        assert {(key, 0, attempt, None) for attempt in (1, 2, 3)} <= reached
        assert {(key, 1, attempt, 201) for attempt in (1, 2, 3)} <= reached
        assert (key, 1, 3, 500) in reached, "failed for good"
    # Under a holder that lives, or has died: the lease of every attempt has run out.
    assert {(attempt, alive) for _, state, attempt, alive, _, _ in found.queries if state == 0} == {
        (attempt, alive) for attempt in (1, 2, 3) for alive in (0, 1)
    }


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.__name__)
def test_a_seeded_bug_is_found(seed: Seed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = Explorer(tmp_path)
    seed(explorer.world, monkeypatch)
    with pytest.raises(Violation) as violation:
        explorer.explore(replicas=2, crashes=1)
    print(violation.value)
    assert SEEDS[seed] in str(violation.value)
