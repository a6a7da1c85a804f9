-- Whether a run can go on although none of its calls waits, as an agent's that was paused or whose server ended.
ALTER TABLE runs ADD COLUMN is_open INTEGER NOT NULL DEFAULT 0;
