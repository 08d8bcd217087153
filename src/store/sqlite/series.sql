SELECT id, service, version, host, type, labels, each FROM series ORDER BY id
