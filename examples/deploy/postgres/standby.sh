#!/bin/bash
# Runs the synchronous standby of $PRIMARY. An empty folder starts as a copy of the primary.
set -eu
export PGPASSWORD="$POSTGRES_PASSWORD"
primary="host=$PRIMARY port=${PRIMARY_PORT:-5432} user=replicator"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # A copy that broke off does not count. Under the standby's own name a copy would count as synchronous already.
  rm -rf "$PGDATA"
  until pg_basebackup -d "$primary" -D "$PGDATA" -R -X stream -c fast; do rm -rf "$PGDATA"; sleep 1; done
  chmod 700 "$PGDATA"
fi
exec postgres -D "$PGDATA" -c primary_conninfo="$primary application_name=standby" "$@"
