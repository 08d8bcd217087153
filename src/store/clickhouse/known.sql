SELECT count() FROM $db.batches WHERE id = $id FORMAT RowBinary
