-- Of a file of version 1.
SELECT id, service, version, host, type, labels, 0 AS each FROM series ORDER BY id
