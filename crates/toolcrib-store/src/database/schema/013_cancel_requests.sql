-- Why somebody has asked the server that works on a run to cancel it; NULL if nobody has.
ALTER TABLE runs ADD COLUMN cancel_reason TEXT;
