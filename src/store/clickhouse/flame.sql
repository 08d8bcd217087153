SELECT stack, $labels, $service, $version, $host, $step, sum(samples), sum(value) FROM $table WHERE $where GROUP BY $groups FORMAT RowBinary
