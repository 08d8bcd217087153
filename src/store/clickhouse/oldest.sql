SELECT toUInt32(min(time)), count() FROM $db.samples FORMAT RowBinary
