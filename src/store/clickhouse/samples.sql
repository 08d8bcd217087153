-- $name is filled in: what a version of the server or a cluster needs. Samples of some hours that share a stack lie together, so that its id costs little.
CREATE TABLE IF NOT EXISTS $db.samples$local $on (time DateTime$t64, service $text, version $text$zstd, host $text$zstd, type $text,
  labels FixedString(16)$zstd, stack FixedString(16)$zstd, samples UInt64$t64, value UInt64$zstd$batch)
  ENGINE = $merge_samples PARTITION BY toDate(time) ORDER BY (service, type, $chunk, stack, host, time, version, labels)$keep_samples$settings;
CREATE TABLE IF NOT EXISTS $db.samples_1h$local $on (hour DateTime$delta, service $text, version $text, type $text,
  labels FixedString(16)$zstd, stack FixedString(16)$zstd, samples UInt64$t64, value UInt64$zstd)
  ENGINE = $sum_samples_1h PARTITION BY toYYYYMM(hour) ORDER BY (service, type, hour, version, labels, stack)$keep_hours$settings;
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.samples_1h_of$local $on TO $db.samples_1h$local AS SELECT toDateTime(intDiv(toUInt32(time), 3600) * 3600) AS hour,
  service, version, type, labels, stack, sum(samples) AS samples, sum(value) AS value FROM $db.samples$local
  GROUP BY hour, service, version, type, labels, stack;
