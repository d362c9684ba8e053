#!/bin/sh
# Name the images of others by digest, as their registry has them now: deploy/pin_images.sh
#
# A tag may name other bytes tomorrow. This writes one line per image into .env, which compose
# reads: PYTHON_IMAGE=python:3.11-slim@sha256:... It needs docker with buildx, and a registry. Keep
# the file with your deployment, and run this again for the fixes of a later image.
set -eu

cd -- "$(dirname -- "$0")/.."
fail() {
  echo "pin_images: $*; .env is as it was" >&2
  exit 1
}
images() {
  sed -En 's/.*\b([A-Z]+_IMAGE)(=|:-)([^ }]+).*/\1 \3/p' Dockerfile docker-compose.yml | sort -u
}

new=$(mktemp .env.XXXXXX)
trap 'rm -f "$new"' EXIT
[ ! -f .env ] || grep -Ev '^[A-Z]+_IMAGE=' .env >"$new" || :
images | while read -r name image; do
  digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}') ||
    fail "the registry did not answer for $image"
  printf '%s\n' "$digest" | grep -Eqx 'sha256:[0-9a-f]{64}' || fail "no digest of $image: $digest"
  printf '%s=%s@%s\n' "$name" "$image" "$digest" | tee -a "$new"
done
mv "$new" .env
