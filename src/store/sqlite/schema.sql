-- Version 2. A value is stored less `each` of its series for every sample, which of most rows leaves 0, a number that takes no room.
-- Version 1 has no `each`, which is 0 there. Numbers that are unsigned in wick (addresses, hashes' halves) are stored as the signed number of the same bits.
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE batch (id TEXT PRIMARY KEY, time INTEGER NOT NULL, duration INTEGER NOT NULL, rows INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE object (id INTEGER PRIMARY KEY, path TEXT NOT NULL, build_id BLOB NOT NULL, kind INTEGER NOT NULL, pid INTEGER NOT NULL,
  start INTEGER NOT NULL, size INTEGER NOT NULL, UNIQUE (path, build_id, kind, pid, start, size));
CREATE TABLE frame (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, name TEXT NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL,
  col INTEGER NOT NULL, offset INTEGER NOT NULL, first_line INTEGER NOT NULL, module TEXT NOT NULL, language TEXT NOT NULL,
  object INTEGER NOT NULL, address INTEGER NOT NULL, raw INTEGER NOT NULL, flags INTEGER NOT NULL);
CREATE TABLE stack (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, parent INTEGER NOT NULL, frame INTEGER NOT NULL);
CREATE TABLE labels (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE);
CREATE TABLE label (labels INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (labels, key)) WITHOUT ROWID;
CREATE TABLE series (id INTEGER PRIMARY KEY, service TEXT NOT NULL, version TEXT NOT NULL, host TEXT NOT NULL, type TEXT NOT NULL,
  labels INTEGER NOT NULL, each INTEGER NOT NULL DEFAULT 0, UNIQUE (service, version, host, type, labels));
CREATE TABLE sample (series INTEGER NOT NULL, time INTEGER NOT NULL, stack INTEGER NOT NULL, samples INTEGER NOT NULL, value INTEGER NOT NULL,
  PRIMARY KEY (series, time, stack)) WITHOUT ROWID;
CREATE TABLE hour (series INTEGER NOT NULL, time INTEGER NOT NULL, stack INTEGER NOT NULL, samples INTEGER NOT NULL, value INTEGER NOT NULL,
  PRIMARY KEY (series, time, stack)) WITHOUT ROWID;
CREATE TABLE name (build_id BLOB NOT NULL, address INTEGER NOT NULL, name TEXT NOT NULL, file TEXT NOT NULL, line INTEGER NOT NULL,
  PRIMARY KEY (build_id, address)) WITHOUT ROWID;
CREATE TABLE note (batch TEXT NOT NULL, kind TEXT NOT NULL, sentence TEXT NOT NULL, apart INTEGER NOT NULL, count INTEGER NOT NULL,
  place INTEGER NOT NULL, example TEXT, PRIMARY KEY (batch, kind, sentence, example));
