#!/bin/bash
# Sets up a fresh primary: the journal's user and database, a user for the standby, and synchronous replication.
set -eu
psql -v ON_ERROR_STOP=1 -v password="$POSTGRES_PASSWORD" -U postgres -d postgres <<'SQL'
create role mintmark login password :'password';
create database mintmark owner mintmark;
create role replicator login replication password :'password';
-- Last, because everything after it waits for the standby. It holds from the next start on.
alter system set synchronous_standby_names = 'ANY 1 (standby)';
SQL
echo 'host replication replicator all scram-sha-256' >> "$PGDATA/pg_hba.conf"
