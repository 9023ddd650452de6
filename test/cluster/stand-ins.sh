#!/usr/bin/env bash
# Makes images with the names that charts/genmesh-backing uses, for a machine that cannot pull any: real NATS and MinIO, and a
# server of MongoDB's protocol. Their binaries are those of the backends script. Prints the names.
#   stand-ins.sh FOLDER     FOLDER has bin/{nats-server,minio,ferretdb} and sid/, a root with PostgreSQL and DocumentDB
set -euo pipefail
cache=$1
here=$(cd "$(dirname "$0")/../.." && pwd)
image() { sed -n "/^$1:/,/image:/s/.*image: //p" "$here/charts/genmesh-backing/values.yaml" | head -1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for server in nats minio; do
  name=$(image "$server")
  binary=$server; [ "$server" = nats ] && binary=nats-server
  mkdir "$work/$server"
  cp "$cache/bin/$binary" "$work/$server/server"
  # Compose's health checks call wget and curl. Their last argument is the URL.
  cat >"$work/$server/ask" <<'SCRIPT'
#!/usr/local/bin/node
fetch(process.argv.at(-1)).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1));
SCRIPT
  chmod 755 "$work/$server/ask"
  printf 'FROM node:24-bookworm-slim\nCOPY server /server\nCOPY ask /usr/bin/wget\nCOPY ask /usr/bin/curl\nENTRYPOINT ["/server"]\n' \
    >"$work/$server/Dockerfile"
  docker build --quiet --tag "$name" "$work/$server" >/dev/null
  echo "$name"
done

mkdir "$work/mongodb"
cp "$cache/bin/ferretdb" "$work/mongodb/"
cat >"$work/mongodb/mongod" <<'SCRIPT'
#!/bin/bash
# The arguments are mongod's; this has one member and listens everywhere.
set -e
bin=/usr/lib/postgresql/18/bin data=/data/db/postgresql
if [ ! -f "$data/PG_VERSION" ]; then
  "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale C.UTF-8 >/dev/null
  cat >>"$data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = '/tmp'
shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'
cron.database_name = postgres
max_connections = 200
CONF
fi
rm -f "$data/postmaster.pid"
"$bin/postgres" -D "$data" &
until "$bin/psql" -q -h 127.0.0.1 -U postgres -c 'CREATE EXTENSION IF NOT EXISTS documentdb CASCADE'; do sleep 0.3; done
exec /ferretdb --postgresql-url=postgres://postgres@127.0.0.1:5432/postgres --listen-addr=:27017 --no-auth \
  --telemetry=disable --debug-addr=- --state-dir=/data/db
SCRIPT
cat >"$work/mongodb/mongosh" <<'SCRIPT'
#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/27017
SCRIPT
cat >"$work/mongodb/Dockerfile" <<'FILE'
FROM mongodb-root
RUN useradd --uid 999 mongodb 2>/dev/null || useradd --uid 999 --non-unique mongodb; mkdir -p /data/db && chown 999:999 /data/db
COPY mongod mongosh ferretdb /usr/local/bin/
RUN ln -s /usr/local/bin/ferretdb /ferretdb
USER 999
ENTRYPOINT ["/usr/local/bin/mongod"]
FILE
chmod 755 "$work"/mongodb/{mongod,mongosh,ferretdb}
tar -C "$cache/sid" --exclude=./var/lib/genmesh --exclude=./var/cache --exclude=./proc --exclude=./dev -c . |
  docker import - mongodb-root >/dev/null
name=$(image mongodb)
docker build --quiet --tag "$name" "$work/mongodb" >/dev/null
echo "$name"
