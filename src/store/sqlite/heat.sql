-- Sums by time, of one series.
SELECT sum(samples) AS samples, sum(value) AS value, time - time % :step AS step
FROM sample WHERE series = :series AND time >= :from AND time < :to GROUP BY step
