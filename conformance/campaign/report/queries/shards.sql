-- Every shard once, as `kipcheck report` counts it. The other queries read this as the view `shards`.
--
-- `rows` is a view of all files of the ledgers of one campaign or of many:
--   CREATE TEMPORARY VIEW rows AS SELECT * FROM parquet.`DIR/ledger/*/*.parquet`;
--   CREATE TEMPORARY VIEW shards AS <this query>;
-- A shard may be told of more than once, for a driver that was killed does not know what it had written. The first that
-- tells what came of the shard counts, and what is no outcome of its own only where there is nothing else.
SELECT * EXCEPT (place)
FROM (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY campaign, round, shard
      ORDER BY
        CASE WHEN status IN ('lost', 'unlike') THEN 2 WHEN status = 'infra' THEN 1 ELSE 0 END,
        started,
        digest
    ) AS place
  FROM rows
)
WHERE place = 1
