-- Failures that did not recur when they were run alone, and shards that did not end well at the first attempt.
SELECT
  campaign,
  target,
  'a failure did not recur alone' AS what,
  concat_ws(' ', each.check, each.invariant, each.subject, array_join(each.shape, ' ')) AS where,
  count(*) AS times
FROM (SELECT campaign, target, explode(found) AS each FROM shards WHERE stage = 'reduce')
WHERE each.line = ''
GROUP BY campaign, target, each.check, each.invariant, each.subject, each.shape
UNION ALL
SELECT
  campaign,
  target,
  CASE WHEN status = 'done' THEN 'a shard was run again' ELSE concat('a shard ended as ', status) END AS what,
  split_part(detail, '\n', 1) AS where,
  count(*) AS times
FROM shards
WHERE status <> 'done' OR attempt > 0
GROUP BY campaign, target, status, split_part(detail, '\n', 1)
ORDER BY campaign, target, what, where
