#!/bin/sh
# A Debian of the day in place of python:3.11-slim, as an archive: scripts/stand_ins/python.sh FILE.tar
# Needs root and mmdebstrap. It trusts the certificates that this machine trusts.
set -eu

certificates=/etc/ssl/certs/ca-certificates.crt
# Without documents and translations, as images are. The hooks' own shell knows $1.
# shellcheck disable=SC2016
exec mmdebstrap -q --variant=minbase \
  --include=python3,python3-venv,python-is-python3,ca-certificates \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='rm -f "$1"/usr/lib/python3*/EXTERNALLY-MANAGED' \
  --customize-hook="copy-in $certificates /etc/ssl/certs" \
  --customize-hook="printf '[global]\ncert=$certificates\n' >\"\$1\"/etc/pip.conf" \
  bookworm "$1"
