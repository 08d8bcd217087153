-- Sums by the day (UTC), for queries that cover weeks. Tables of an earlier wick get them too: days before $db.days_from are added up from hours.
CREATE TABLE IF NOT EXISTS $db.samples_1d$local $on (day DateTime$delta, service $text, version $text, type $text,
  labels FixedString(16)$zstd, stack FixedString(16)$zstd, samples UInt64$t64, value UInt64$zstd)
  ENGINE = $sum_samples_1d PARTITION BY toYYYYMM(day) ORDER BY (service, type, day, version, labels, stack)$keep_days$settings;
CREATE MATERIALIZED VIEW IF NOT EXISTS $db.samples_1d_of$local $on TO $db.samples_1d$local AS SELECT toDateTime(intDiv(toUInt32(time), 86400) * 86400) AS day,
  service, version, type, labels, stack, sum(samples) AS samples, sum(value) AS value FROM $db.samples$local
  GROUP BY day, service, version, type, labels, stack;
