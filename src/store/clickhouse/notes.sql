SELECT kind, sentence, apart, sum(c), min(p), argMin(e, p), max(h) FROM (SELECT batch, kind, sentence, example AS e, any(apart) AS apart, any(count) AS c,
  any(place) AS p, any(has_example) AS h FROM $db.notes WHERE time >= toDateTime($from) AND time < toDateTime($to) GROUP BY batch, kind, sentence, example)
GROUP BY kind, sentence, apart, if(apart = 1, e, '') ORDER BY kind, sentence FORMAT RowBinary
