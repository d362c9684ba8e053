#!/bin/sh
# Run a command beside a container engine: scripts/with_docker.sh pytest -q tests/process/test_containers.py
#
# Uses the engine that is reachable, with images of its registry. Else, as root, a new one, which
# DOCKER_HOST names then; of it nothing is left behind. What a registry does not give it, programs
# of Debian stand in for (scripts/stand_ins), which PYTHON_IMAGE and others name then. The status is
# the command's. Needs compose, and
#   apt-get install -y --no-install-recommends docker.io mmdebstrap
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
missing() {
  echo "no container engine: $*" >&2
  exit 3
}
docker compose version >/dev/null 2>&1 || missing "docker has no compose"
if docker version >/dev/null 2>&1; then exec "$@"; fi
[ "$(id -u)" = 0 ] || missing "none runs, and starting one takes root"
for program in dockerd mmdebstrap iptables-save iptables-restore; do
  command -v "$program" >/dev/null || missing "apt-get install docker.io mmdebstrap"
done

dir=$(mktemp -d)
export DOCKER_HOST="unix://$dir/docker.sock"
forward=$(cat /proc/sys/net/ipv4/ip_forward)
bridge=$(ip -brief link show docker0 2>/dev/null || :)
iptables-save >"$dir/rules"
pid=
stop() {
  if [ -n "$pid" ]; then
    docker ps --all --quiet | xargs -r docker rm --force --volumes >/dev/null 2>&1 || :
    docker network prune --force >/dev/null 2>&1 || :
    kill "$pid" 2>/dev/null || :
    wait "$pid" || :
  fi
  [ -n "$bridge" ] || ip link delete docker0 2>/dev/null || :
  iptables-restore <"$dir/rules" || :
  echo "$forward" >/proc/sys/net/ipv4/ip_forward
  rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT TERM
dockerd --data-root "$dir/data" --exec-root "$dir/run" --pidfile "$dir/pid" --host "$DOCKER_HOST" \
  >"$dir/log" 2>&1 &
pid=$!
for _ in $(seq 120); do
  if docker version >/dev/null 2>&1; then break; fi
  kill -0 "$pid" 2>/dev/null || { tail "$dir/log" >&2; missing "a new one does not start"; }
  sleep 0.5
done
stand_ins=$("$here/stand_ins/images.sh")
for one in $stand_ins; do export "${one?}"; done
"$@"
