SELECT min(first), max(last), sum(n) FROM (
  SELECT toUInt32(min(time)) AS first, toUInt32(max(time)) AS last, count() AS n FROM $db.samples
  UNION ALL SELECT toUInt32(min(hour)) AS first, toUInt32(max(hour)) AS last, count() AS n FROM $db.samples_1h
) WHERE n > 0 FORMAT RowBinary
