-- What a request brings with it besides its address; NULL: nothing.
ALTER TABLE relayed_requests ADD COLUMN sent bytea;
ALTER TABLE relayed_requests ADD COLUMN sent_type text;
