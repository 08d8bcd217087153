-- The first and last time; sums by the hour count where samples are gone.
SELECT min(first), max(last) FROM (SELECT (SELECT min(time) FROM sample WHERE series = s.id) AS first,
  (SELECT max(time) FROM sample WHERE series = s.id) AS last FROM series s UNION ALL
  SELECT (SELECT min(time) FROM hour WHERE series = s.id AND time < :samples_from),
  (SELECT max(time) FROM hour WHERE series = s.id AND time < :samples_from) FROM series s)
