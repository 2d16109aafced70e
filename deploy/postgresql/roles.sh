#!/bin/sh
# Run once by the image of PostgreSQL, where its data are new: the two roles of a ledger, and
# its database.  `conclave ledger prepare --grant conclave_server` makes the tables.
set -eu

psql --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set owner="$(cat /run/secrets/owner_password)" \
    --set server="$(cat /run/secrets/server_password)" <<'SQL'
CREATE ROLE conclave_owner LOGIN PASSWORD :'owner';
CREATE ROLE conclave_server LOGIN PASSWORD :'server';
CREATE DATABASE conclave OWNER conclave_owner;
REVOKE ALL ON DATABASE conclave FROM PUBLIC;
GRANT CONNECT ON DATABASE conclave TO conclave_server;
SQL
