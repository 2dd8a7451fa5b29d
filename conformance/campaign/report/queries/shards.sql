-- Every shard once, as `kipcheck report` counts it. The other queries read this as the view `shards`.
--
-- `rows` is a view of all files of the ledgers of one campaign or of many:
--   CREATE TEMPORARY VIEW rows AS SELECT * FROM parquet.`DIR/ledger/*/*.parquet`;
--   CREATE TEMPORARY VIEW shards AS <this query>;
-- A shard may have several rows, because a driver that was killed does not know what it had written. The first row
-- with a result of the shard itself counts; any other row counts only if there is none.
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
