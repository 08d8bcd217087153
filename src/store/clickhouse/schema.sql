-- All but samples and their sums, which come first: a store is whole when these tables are there. $name is filled in.
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
