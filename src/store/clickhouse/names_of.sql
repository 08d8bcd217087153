SELECT id, name, file, line, col, offset, first_line, module, language, address, raw, flags, object, build_id, kind, pid, start, size FROM $db.frames
WHERE id GLOBAL IN (SELECT arrayJoin(frames) FROM $db.stacks WHERE id GLOBAL IN (SELECT stack FROM $table WHERE $where)) FORMAT RowBinary
