-- The digest of what makes two calls of one caller the same, for calls that the same call can join.
ALTER TABLE suspensions ADD COLUMN call_key TEXT;
CREATE INDEX suspensions_by_call ON suspensions (call_key, created_at, id) WHERE call_key IS NOT NULL;
ALTER TABLE settled ADD COLUMN call_key TEXT;
CREATE INDEX settled_by_call ON settled (call_key, decided_at, id) WHERE call_key IS NOT NULL;
