-- Schema 5: no index over what is random. Each artifact dirtied a page of its own there, more than all else
-- that a settle writes; who wants to know which bytes are named reads the rows in their order.

DROP INDEX artifact_bytes;

-- store_id: random, by which a lake knows whose it is.
INSERT INTO meta VALUES ('store_id', lower(hex(randomblob(16))));
