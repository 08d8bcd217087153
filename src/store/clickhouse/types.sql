SELECT DISTINCT type FROM $table WHERE $where ORDER BY type FORMAT RowBinary
