-- Places in files with a build id that were stored without a name.
SELECT DISTINCT o.build_id, o.path, f.address - (f.flags >> 11 & 1) FROM frame f JOIN object o ON o.id = f.object
WHERE f.flags & 65536 = 0 AND length(o.build_id) > 0 AND o.kind = 2
AND NOT EXISTS (SELECT 1 FROM name n WHERE n.build_id = o.build_id AND n.address = f.address - (f.flags >> 11 & 1))
ORDER BY 1, 3
