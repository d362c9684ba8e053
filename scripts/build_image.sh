#!/bin/sh
# Build the image and live through a restart of it, without a container engine:
#
#   scripts/build_image.sh [FOLDER]      FOLDER holds the Dockerfile; this checkout by default
#
# Needs root and: apt-get install -y --no-install-recommends buildah mmdebstrap
# A Debian of the day stands in for python:3.11-slim, so the Dockerfile is built as it is. The
# container's root is mounted read-only, with the image's own user, environment, command and check;
# networks, cgroups and seccomp are an engine's and are not tried. 3 GB of disk, some minutes.
set -eu

project=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
context=${1:-$project}
python=$project/.venv/bin/python
most=700 # megabytes of the image, all layers together

# What plays the demonstration at the end; better missed now than after the build.
if [ ! -x "$python" ]; then
  echo "needs the packages of this checkout: ./run verify makes .venv" >&2
  exit 3
fi
work=$(mktemp -d)
pid=
clean() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || :
  buildah --root "$work/store" --runroot "$work/run" rm --all >/dev/null 2>&1 || :
  rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
images() { buildah --root "$work/store" --runroot "$work/run" "$@"; }
say() { printf '%s\n' "image: $*"; }
megabytes() { du -s --apparent-size --block-size=MB "$1" | sed 's/MB.*//'; }
fail() {
  say "FAILED: $*"
  [ ! -f "$work/log" ] || tail -n 20 "$work/log"
  exit 1
}

say "a root file system in place of python:3.11-slim"
"$project/scripts/stand_ins/python.sh" "$work/base.tar"
base=$(images from scratch)
images add -q "$base" "$work/base.tar" / >/dev/null
say "which has $(megabytes "$(images mount "$base")") MB"
images commit -q "$base" localhost/python:stand-in >/dev/null
images rm "$base" >/dev/null
rm "$work/base.tar"

say "the image"
# The format of Docker keeps HEALTHCHECK.
images bud -q --pull-never --format docker --build-arg PYTHON_IMAGE=localhost/python:stand-in \
  -t privypurse:check "$context" >"$work/log" 2>&1 ||
  fail "it does not build"
container=$(images from --pull-never privypurse:check)
root=$(images mount "$container")
inspect() { images inspect --type image --format "$1" privypurse:check; }
user=$(inspect '{{.Docker.Config.User}}')
size=$(megabytes "$root")
say "user $user, $size MB"
[ "$size" -le "$most" ] || fail "more than $most MB"
[ "$user" = 999 ] || fail "it does not run as 999"

# Volumes as an engine makes them: of the image's contents and owners.
mkdir "$work/volumes"
cp -a "$root/data" "$work/volumes/data"
cp -a "$root/opt/kernels" "$work/volumes/kernels"
port=$("$python" -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
url=http://127.0.0.1:$port

inspect '{{range .Docker.Config.Env}}{{println .}}{{end}}' >"$work/environment"
inspect '{{range .Docker.Config.Cmd}}{{println .}}{{end}}' | sed "s/^8000\$/$port/" >"$work/command"
inspect '{{range .Docker.Config.Healthcheck.Test}}{{println .}}{{end}}' |
  sed "1d; s/:8000/:$port/" >"$work/check"
[ -s "$work/check" ] || fail "it has no health check"

# Run a command, one word a line of a file, as a container of this image would.
cat >"$work/inside" <<'SH'
#!/bin/sh
set -eu
root=$1 work=$2 user=$3 words=$4
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount --bind "$work/volumes/data" "$root/data"
mount --bind "$work/volumes/kernels" "$root/opt/kernels"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
set --
while IFS= read -r word; do set -- "$@" "$word"; done <"$work/environment"
while IFS= read -r word; do set -- "$@" "$word"; done <"$words"
cd "$root"
exec chroot --userspec="$user" "$root" env -i -C /srv "$@"
SH
inside() { unshare --mount sh "$work/inside" "$root" "$work" "$user" "$1"; }
words() {
  printf '%s\n' "$@" >"$work/words"
  inside "$work/words"
}

say "$(words id)"
[ "$(words id -u)" = 999 ] || fail "it runs as another user"
# Anybody may write to the last one where the root is not read-only.
for place in /srv/x /opt/venv/x /usr/x /var/tmp/x; do
  ! words touch "$place" 2>/dev/null || fail "$place can be written"
done
words touch /data/x || fail "its volume cannot be written"
words rm /data/x

start() {
  unshare --mount sh "$work/inside" "$root" "$work" "$user" "$work/command" >>"$work/log" 2>&1 &
  pid=$!
  for _ in $(seq 240); do
    if curl -fs "$url/readyz" >/dev/null; then return; fi
    kill -0 "$pid" 2>/dev/null || fail "it ended"
    sleep 0.5
  done
  fail "it is not ready"
}
stop() {
  kill -TERM "$pid"
  wait "$pid" || fail "it ended with status $?"
  pid=
}

: >"$work/log"
say "first start; its first kernels, the demonstration, its check"
start
inside "$work/check" || fail "it does not find itself healthy"
PYTHONPATH=$project "$python" "$project/scripts/play.py" "$url" "$work" >"$work/played" ||
  { tail "$work/played"; fail "the demonstration"; }
say "restart"
stop
inside "$work/check" 2>/dev/null && fail "it finds itself healthy when nothing runs"
start
PYTHONPATH=$project "$python" "$project/scripts/play.py" "$url" "$work" --again ||
  fail "the ledger is not what it was"
stop
say "passed: user 999, root read-only, $size MB, ledger intact after a restart"
