-- From version 1. Series that are there keep their values as they are.
ALTER TABLE series ADD COLUMN each INTEGER NOT NULL DEFAULT 0;
