-- Sums by stack, of one series; a step of 0 is no step.
SELECT stack, sum(samples) AS samples, sum(value) AS value, time - time % :step AS step
FROM sample WHERE series = :series AND time >= :from AND time < :to GROUP BY step, stack
