SELECT build_id, address, name, file, line FROM $db.names ORDER BY build_id, address FORMAT RowBinary
