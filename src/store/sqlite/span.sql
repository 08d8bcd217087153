-- The first and last time of one series; sums by the hour count where samples are gone.
SELECT min(first), max(last) FROM (SELECT (SELECT min(time) FROM sample WHERE series = :series AND time >= :from AND time < :to) AS first,
  (SELECT max(time) FROM sample WHERE series = :series AND time >= :from AND time < :to) AS last UNION ALL
  SELECT (SELECT min(time) FROM hour WHERE series = :series AND time >= :from AND time < min(:to, :samples_from)),
  (SELECT max(time) FROM hour WHERE series = :series AND time >= :from AND time < min(:to, :samples_from)))
