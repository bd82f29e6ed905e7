-- Version 5: no index over what is random; 0005_bytes.sql of SQLite says why.

DROP INDEX pawl.artifact_bytes;
