-- What the server said of a pinned definition, to be shown beside a changed one.
ALTER TABLE pins ADD COLUMN says TEXT;
