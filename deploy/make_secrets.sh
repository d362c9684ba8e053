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
# An authority that signs a certificate for each role in the cluster, and is then forgotten.
if [ ! -s secrets/cluster/ca.pem ]; then
  new=secrets/.cluster
  rm -rf "$new"
  mkdir "$new"
  ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
  # shellcheck disable=SC2086 # several words
  openssl req -x509 $ec -days 1095 -subj '/CN=privypurse cluster' \
    -addext keyUsage=critical,keyCertSign \
    -keyout "$new/ca.key" -out "$new/ca.pem" 2>/dev/null
  for role in scheduler worker client; do
    # shellcheck disable=SC2086
    openssl req $ec -subj "/OU=$role/CN=privypurse $role" \
      -keyout "$new/$role.key" -out "$new/$role.csr" 2>/dev/null
    printf '%s\n' keyUsage=critical,digitalSignature subjectKeyIdentifier=hash \
      authorityKeyIdentifier=keyid >"$new/extensions"
    openssl x509 -req -days 1095 -in "$new/$role.csr" -out "$new/$role.pem" \
      -extfile "$new/extensions" \
      -CA "$new/ca.pem" -CAkey "$new/ca.key" -CAcreateserial 2>/dev/null
  done
  rm -f "$new"/ca.key "$new"/*.csr "$new"/*.srl "$new/extensions"
  chmod 755 "$new"
  chmod 444 "$new"/*
  mv "$new" secrets/cluster
fi
