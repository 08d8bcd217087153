-- Stacks, labels and series that nothing refers to any more. Frames and objects are few, and stay.
CREATE TEMP TABLE used AS WITH RECURSIVE up (id) AS (SELECT stack FROM main.sample UNION SELECT stack FROM main.hour
  UNION SELECT s.parent FROM main.stack s JOIN up ON s.id = up.id WHERE s.parent > 0) SELECT id FROM up;
CREATE UNIQUE INDEX temp.used_id ON used (id);
DELETE FROM main.stack WHERE id NOT IN (SELECT id FROM temp.used);
DROP TABLE temp.used;
DELETE FROM main.series WHERE NOT EXISTS (SELECT 1 FROM main.sample x WHERE x.series = main.series.id)
  AND NOT EXISTS (SELECT 1 FROM main.hour x WHERE x.series = main.series.id);
DELETE FROM main.labels WHERE id NOT IN (SELECT labels FROM main.series);
DELETE FROM main.label WHERE labels NOT IN (SELECT id FROM main.labels);
