-- The first day that begins after the view was made and after all samples that it has not seen; 0 in a store without samples.
SELECT if(count() = 0, toUInt64(0), toUInt64(intDiv(greatest(toUInt32(now()), toUInt32(max(hour))), 86400) * 86400 + 86400)) FROM $db.samples_1h FORMAT RowBinary
