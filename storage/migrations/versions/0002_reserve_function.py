"""PostgreSQL: a batch of reserves as one function, so that no lock waits for a round trip.

SQLite has no stored functions; there the same statements run inside the process
(``storage.reserving``), and this migration has nothing to do.
"""

from __future__ import annotations

from alembic import op

from storage.migrations.refusing import refuse_downgrade

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Danger: a check made before an UPDATE could be outdated when the UPDATE writes. So the condition
# that a charge fits is in the WHERE of the UPDATE itself. A refused query rolls back to the start
# of its own block, and the other queries of the batch are kept. The digests of entries must equal
# those of ``storage.chain``, a module of that version, byte for byte.
RESERVE = """
CREATE FUNCTION reserve_queries(
    ids uuid[], analysts bigint[], datasets bigint[], versions int[], keys text[],
    body_hashes bytea[], requests bytea[], subjects bytea[], eps bigint[], deltas bigint[],
    lease_us bigint,
    OUT outcome int, OUT at_us bigint, OUT current_version int, OUT head bytea,
    OUT limit_eps bigint, OUT limit_delta bigint, OUT spent_eps bigint, OUT spent_delta bigint
) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    account record;
    changed record;
    entry_digest bytea;
    charged_accounts int;
BEGIN
    IF cardinality(ids) > 1 THEN
        -- Narrow before wide over the whole batch: two batches never wait for each other in turn.
        PERFORM 1 FROM budget_account a
         WHERE (a.rank, a.dataset_id, a.analyst_id) IN (
               SELECT 0::smallint, d, u FROM unnest(datasets, analysts) AS t (d, u)
         UNION SELECT 1::smallint, 0, u FROM unnest(analysts) AS t (u)
         UNION SELECT 2::smallint, d, 0 FROM unnest(datasets) AS t (d))
         ORDER BY a.rank, a.id FOR NO KEY UPDATE;
    END IF;
    FOR n IN 1 .. cardinality(ids) LOOP
        outcome := 0;
        head := NULL;
        at_us := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
        account := NULL;
        BEGIN
            INSERT INTO query (id, analyst_id, dataset_id, dataset_version, idem_key, body_hash,
                    request, eps_n, delta_a, state, attempt, attempt_us, lease_until, created_us)
            VALUES (ids[n], analysts[n], datasets[n], versions[n], keys[n], body_hashes[n],
                    requests[n], eps[n], deltas[n], 0, 1, at_us, at_us + lease_us, at_us)
            ON CONFLICT (analyst_id, idem_key) DO NOTHING;
            IF NOT FOUND THEN
                outcome := 1;
            ELSE
                charged_accounts := 0;
                FOR account IN
                    SELECT a.id, a.rank FROM budget_account a
                     WHERE (a.rank, a.dataset_id, a.analyst_id) IN (
                           (0, datasets[n], analysts[n]), (1, 0, analysts[n]), (2, datasets[n], 0))
                     ORDER BY a.rank, a.id
                LOOP
                    entry_digest := sha256(
                        '\\x00000012'::bytea || 'privypurse entry 2'::bytea
                        || '\\x00000008'::bytea || int8send(account.id)
                        || '\\x00000008'::bytea || int8send(1)
                        || '\\x00000010'::bytea || uuid_send(ids[n])
                        || '\\x00000008'::bytea || int8send(analysts[n])
                        || '\\x00000008'::bytea || int8send(eps[n])
                        || '\\x00000008'::bytea || int8send(deltas[n])
                        || '\\x00000008'::bytea || int8send(at_us)
                        || '\\x00000020'::bytea || subjects[n]);
                    UPDATE budget_account a
                       SET charged_eps_n = a.charged_eps_n + eps[n],
                           charged_delta_a = a.charged_delta_a + deltas[n],
                           seq = a.seq + 1, head = sha256(a.head || entry_digest)
                     WHERE a.id = account.id AND a.frozen = 0
                       AND a.charged_eps_n + eps[n] <= a.lim_eps_n
                       AND a.charged_delta_a + deltas[n] <= a.lim_delta_a
                    RETURNING a.* INTO changed;
                    IF NOT FOUND THEN
                        RAISE EXCEPTION USING ERRCODE = 'PP001', MESSAGE = 'refused';
                    END IF;
                    INSERT INTO entry (account_id, seq, kind, query_id, actor, d_eps_n, d_delta_a,
                                       at_us, digest, head, subject)
                    VALUES (account.id, changed.seq, 1, ids[n], analysts[n], eps[n], deltas[n],
                            at_us, entry_digest, changed.head, subjects[n]);
                    IF account.rank = 0 THEN
                        head := changed.head;
                        limit_eps := changed.lim_eps_n;
                        limit_delta := changed.lim_delta_a;
                        spent_eps := changed.charged_eps_n;
                        spent_delta := changed.charged_delta_a;
                    END IF;
                    IF account.rank <> 1 THEN
                        charged_accounts := charged_accounts + 1;
                    END IF;
                END LOOP;
                IF charged_accounts <> 2 THEN
                    RAISE EXCEPTION USING ERRCODE = 'PP002', MESSAGE = 'no account';
                END IF;
                -- A withdrawal and a publication lock the cap's row first, which is held here.
                SELECT d.version INTO current_version FROM dataset d WHERE d.id = datasets[n];
                IF current_version = 0 THEN
                    RAISE EXCEPTION USING ERRCODE = 'PP003', MESSAGE = 'no records';
                ELSIF current_version <> versions[n] THEN
                    UPDATE query q SET dataset_version = current_version WHERE q.id = ids[n];
                END IF;
            END IF;
        EXCEPTION
            WHEN SQLSTATE 'PP001' THEN
                -- The guard has decided; what stands in the row now only finds the words.
                SELECT CASE WHEN a.frozen = 1 THEN 2 WHEN a.rank = 2 THEN 4 ELSE 3 END,
                       a.lim_eps_n, a.lim_delta_a, a.charged_eps_n, a.charged_delta_a
                  INTO outcome, limit_eps, limit_delta, spent_eps, spent_delta
                  FROM budget_account a WHERE a.id = account.id;
            WHEN SQLSTATE 'PP002' THEN outcome := 5;
            WHEN SQLSTATE 'PP003' THEN outcome := 6;
        END;
        RETURN NEXT;
    END LOOP;
END $$
"""


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(RESERVE)


def downgrade() -> None:
    refuse_downgrade("what was spent would be forgotten")
