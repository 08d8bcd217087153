SELECT DISTINCT build_id, object, toUInt64(address - bitAnd(bitShiftRight(flags, 11), 1)) AS place FROM $db.frames
WHERE bitAnd(flags, 65536) = 0 AND build_id != '' AND kind = 2 ORDER BY build_id, place FORMAT RowBinary
