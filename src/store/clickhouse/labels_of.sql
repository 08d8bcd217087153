SELECT id, keys, vals FROM $db.series WHERE id GLOBAL IN (SELECT labels FROM $table WHERE $where) FORMAT RowBinary
