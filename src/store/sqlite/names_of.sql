-- A frame, with the name that was found later if it had none.
SELECT f.hash, f.name, f.file, f.line, f.col, f.offset, f.first_line, f.module, f.language, f.address, f.raw, f.flags,
  o.path, o.build_id, o.kind, o.pid, o.start, o.size, n.name, n.file, n.line
FROM frame f LEFT JOIN object o ON o.id = f.object
LEFT JOIN name n ON f.flags & 65536 = 0 AND n.build_id = o.build_id AND n.address = f.address - (f.flags >> 11 & 1)
WHERE f.id = :frame
