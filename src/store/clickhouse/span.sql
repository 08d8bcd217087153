SELECT min(first), max(last), sum(n) FROM (
  SELECT toUInt32(min(time)) AS first, toUInt32(max(time)) AS last, count() AS n FROM $db.samples WHERE $where
  UNION ALL SELECT toUInt32(min(hour)) AS first, toUInt32(max(hour)) AS last, count() AS n FROM $db.samples_1h
  WHERE $where_hours AND toUInt32(hour) + 3600 <= (SELECT if(count() = 0, toUInt32(4294967295), toUInt32(min(time))) FROM $db.samples)
) WHERE n > 0 FORMAT RowBinary
