-- Shards of deterministic targets with several results: a bug in kipcheck. There should be none.
SELECT
  campaign,
  round + 1 AS round,
  shard,
  target,
  array_sort(collect_set(digest)) AS digests,
  array_sort(collect_set(host)) AS hosts
FROM rows
WHERE deterministic AND status NOT IN ('lost', 'unlike', 'infra')
GROUP BY campaign, round, shard, target
HAVING count(DISTINCT digest) > 1
ORDER BY campaign, round, shard
