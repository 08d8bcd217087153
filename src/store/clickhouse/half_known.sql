SELECT count() FROM $db.samples WHERE batch = $batch AND time >= toDateTime($from) AND time < toDateTime($to) FORMAT RowBinary
