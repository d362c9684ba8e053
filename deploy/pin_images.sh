#!/bin/sh
# Renew the digests of the images of others, as their registry has them now: deploy/pin_images.sh
#
# A tag may name other bytes tomorrow, so Dockerfile and docker-compose.yml name images by tag and
# digest. This writes today's digests into both, or changes nothing. It needs docker with buildx,
# and a registry.
set -eu

cd -- "$(dirname -- "$0")/.."
fail() {
  echo "pin_images: $*; nothing is changed" >&2
  exit 1
}
images() {
  sed -En 's/.*_IMAGE(=|:-)([^ @}]+)@.*/\2/p' Dockerfile docker-compose.yml | sort -u
}

renewals=
for image in $(images); do
  digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}') ||
    fail "the registry did not answer for $image"
  printf '%s\n' "$digest" | grep -Eqx 'sha256:[0-9a-f]{64}' || fail "no digest of $image: $digest"
  echo "$image@$digest"
  renewals="$renewals;s,$image@sha256:[0-9a-f]{64},$image@$digest,"
done
sed -Ei "$renewals" Dockerfile docker-compose.yml
