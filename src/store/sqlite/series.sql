SELECT id, service, version, host, type, labels FROM series ORDER BY id
