-- What was lost or missing in the batches of a time, added up; the example is that of the smallest place.
SELECT kind, sentence, apart, sum(count), min(place), example FROM note JOIN batch ON batch.id = note.batch
WHERE time >= :from AND time < :to GROUP BY kind, sentence, apart, CASE WHEN apart THEN example END ORDER BY 1, 2, 6
