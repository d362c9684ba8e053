#!/bin/sh
# Give an engine the images that docker-compose.yml and Dockerfile name, without a registry.
#
# Programs of Debian stand in for those of the images: the same users, volumes, capabilities and
# entry points, at Debian's versions. For an engine that is thrown away (scripts/with_docker.sh).
# They have no digest of a registry: their tags are printed as the variables of docker-compose.yml.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
project=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
say() { printf '%s\n' "images: $*" >&2; }

# Its tag, and whether the engine has the one of that digest.
tag() { sed -En "s,.*_IMAGE:-($1:[^@]*)@.*,\\1,p" "$project/docker-compose.yml"; }
has() {
  pinned=$(sed -En "s,.*($1@sha256:[0-9a-f]*).*,\\1,p" "$project/docker-compose.yml")
  docker pull --quiet "$pinned" >/dev/null 2>&1
}

python=$(tag python)
if ! has "$python"; then
  say "a stand-in for $python"
  "$here/python.sh" "$work/python.tar" >&2
  docker import "$work/python.tar" "$python" >/dev/null
  rm "$work/python.tar"
  echo "PYTHON_IMAGE=$python"
fi

caddy=$(tag caddy)
postgres=$(tag postgres)
prometheus=$(tag prom/prometheus)
if has "$caddy" && has "$postgres" && has "$prometheus"; then exit; fi
say "stand-ins for $caddy, $postgres, $prometheus"
# The hooks' own shell knows $1.
# shellcheck disable=SC2016
mmdebstrap -q --variant=minbase --include=caddy,libcap2-bin,postgresql,prometheus \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='chroot "$1" setcap cap_net_bind_service=+ep /usr/bin/caddy' \
  --customize-hook="copy-in $here/postgres.sh /usr/local/bin" \
  --customize-hook='install -d -o 65534 -g 65534 "$1/prometheus"' \
  trixie "$work/programs.tar" >&2
docker import --change 'CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]' \
  --change 'ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data' \
  --change 'WORKDIR /srv' "$work/programs.tar" "$caddy" >/dev/null
docker import --change 'ENTRYPOINT ["postgres.sh"]' --change 'CMD ["postgres"]' \
  --change 'ENV LANG=C.UTF-8 PGDATA=/var/lib/postgresql/data' --change 'VOLUME ["/var/lib/postgresql/data"]' \
  "$work/programs.tar" "$postgres" >/dev/null
docker import --change 'ENTRYPOINT ["/bin/prometheus"]' --change 'USER nobody' \
  --change 'WORKDIR /prometheus' --change 'VOLUME ["/prometheus"]' \
  "$work/programs.tar" "$prometheus" >/dev/null
printf '%s\n' "CADDY_IMAGE=$caddy" "POSTGRES_IMAGE=$postgres" "PROMETHEUS_IMAGE=$prometheus"
