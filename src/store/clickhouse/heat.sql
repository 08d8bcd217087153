SELECT $key, $step, sum(samples), sum(value) FROM $table WHERE $where GROUP BY $groups FORMAT RowBinary
