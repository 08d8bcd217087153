-- $name is filled in: what a version of the server or a cluster needs.
CREATE TABLE IF NOT EXISTS $db.samples$local $on (time DateTime$delta, service $text, version $text, host $text, type $text,
  labels FixedString(16)$zstd, stack FixedString(16)$zstd, samples UInt64$t64, value UInt64$zstd$batch)
  ENGINE = $merge_samples PARTITION BY toDate(time) ORDER BY (service, type, toStartOfHour(time), stack, host, time, version, labels)$samples_settings;
CREATE TABLE IF NOT EXISTS $db.samples_1h$local $on (hour DateTime$delta, service $text, version $text, type $text,
  labels FixedString(16)$zstd, stack FixedString(16)$zstd, samples UInt64$t64, value UInt64$zstd)
  ENGINE = $sum_samples_1h PARTITION BY toYYYYMM(hour) ORDER BY (service, type, hour, version, labels, stack)$hours_settings;
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.samples_1h_of$local $on TO $db.samples_1h$local AS SELECT toStartOfHour(time) AS hour, service, version, type,
  labels, stack, sum(samples) AS samples, sum(value) AS value FROM $db.samples$local GROUP BY hour, service, version, type, labels, stack;
CREATE TABLE IF NOT EXISTS $db.stacks$local $on (id FixedString(16), frames Array(FixedString(16)))
  ENGINE = $replace_stacks ORDER BY id;
CREATE TABLE IF NOT EXISTS $db.frames$local $on (id FixedString(16), name String, file String, line UInt32, col UInt32, offset UInt64, first_line UInt32,
  module String, language String, address UInt64, raw UInt64, flags UInt32, object String, build_id String, kind UInt32, pid Int32, start UInt64, size UInt64)
  ENGINE = $replace_frames ORDER BY id;
CREATE TABLE IF NOT EXISTS $db.series$local $on (id FixedString(16), keys Array(String), vals Array(String))
  ENGINE = $replace_series ORDER BY id;
CREATE TABLE IF NOT EXISTS $db.names$local $on (build_id String, address UInt64, name String, file String, line UInt32)
  ENGINE = $replace_names ORDER BY (build_id, address);
CREATE TABLE IF NOT EXISTS $db.batches$local $on (id String, time DateTime, duration UInt64, rows UInt64)
  ENGINE = $replace_batches ORDER BY id;
CREATE TABLE IF NOT EXISTS $db.notes$local $on (batch String, time DateTime, kind String, sentence String, apart UInt8, count UInt64, place UInt64,
  example String, has_example UInt8) ENGINE = $replace_notes ORDER BY (batch, kind, sentence, example);
CREATE VIEW IF NOT EXISTS $db.schema_version $on AS SELECT toUInt64($schema) AS version;
