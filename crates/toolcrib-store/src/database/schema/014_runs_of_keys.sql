-- The run that the request with an Idempotency-Key has begun, for clients whose answer was lost; NULL if it is none for a run.
ALTER TABLE answers ADD COLUMN run TEXT;
