-- Coverage growth: new kinds of behaviour, by round and target.
WITH seen AS (
  SELECT campaign, target, round, explode(coverage) AS kind FROM shards
),
first AS (
  SELECT campaign, target, kind, min(round) AS round FROM seen GROUP BY campaign, target, kind
),
held AS (
  SELECT campaign, target, round, count(*) AS shards, sum(cases) AS cases, sum(cpu_ms) / 1000 AS cpu_s
  FROM shards
  WHERE stage = 'hold'
  GROUP BY campaign, target, round
),
grown AS (
  SELECT campaign, target, round, count(*) AS new_kinds FROM first GROUP BY campaign, target, round
)
SELECT
  campaign,
  target,
  round + 1 AS round,
  shards,
  cases,
  round(cpu_s, 1) AS cpu_s,
  coalesce(new_kinds, 0) AS new_kinds,
  sum(coalesce(new_kinds, 0)) OVER so_far AS all_kinds,
  round(1000 * coalesce(new_kinds, 0) / nullif(cases, 0), 2) AS new_in_1000_cases
FROM held
LEFT JOIN grown USING (campaign, target, round)
WINDOW so_far AS (PARTITION BY campaign, target ORDER BY round)
ORDER BY campaign, target, round
