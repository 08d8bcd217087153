-- The same, from what was added up by the hour.
SELECT stack, sum(samples) AS samples, sum(value) AS value, time - time % :step AS step
FROM hour WHERE series = :series AND time >= :from AND time < :to GROUP BY step, stack
