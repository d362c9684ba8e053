#!/bin/sh
# Make the secrets that docker-compose.yml reads, each a random one, where there is none yet.
set -eu
cd "$(dirname "$0")"
# Containers read the files under users of their own; on the host the folder keeps others out.
mkdir -p secrets
chmod 700 secrets
for name in database_password metrics_token; do
  if [ ! -s "secrets/$name" ]; then
    head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n' >"secrets/.$name"
    chmod 444 "secrets/.$name"
    mv "secrets/.$name" "secrets/$name"
  fi
done
