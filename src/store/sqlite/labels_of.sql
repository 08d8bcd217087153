SELECT key, value FROM label WHERE labels = :labels ORDER BY key
