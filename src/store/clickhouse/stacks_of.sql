SELECT id, frames FROM $db.stacks WHERE id GLOBAL IN (SELECT stack FROM $table WHERE $where) FORMAT RowBinary
