#!/bin/sh
# What the entry point of the official image of PostgreSQL does with its variables: a new cluster
# under a server that only local sockets reach, then the real one, as the user postgres.
set -eu

PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
if [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 0700 "$PGDATA"
  install -d -o postgres -g postgres -m 3777 /run/postgresql
  password=$(cat "$POSTGRES_PASSWORD_FILE")
  export PATH password
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf '%s\n' "$password" >/tmp/password
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 \
    --auth-local=trust
  rm /tmp/password
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  pg_ctl -w -o "-c listen_addresses=''" start
  createdb --username="$POSTGRES_USER" --maintenance-db=postgres "$POSTGRES_DB"
  pg_ctl -m fast -w stop
fi
unset password
"$@" -c listen_addresses='*' &
# Its image is stopped with SIGINT: clients are not waited for.
trap 'kill -INT $!' TERM
wait || wait
