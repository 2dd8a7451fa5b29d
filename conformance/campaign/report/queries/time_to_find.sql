-- When each failure was first found: after how many cases of its target, in the order of the plan.
WITH ordered AS (
  SELECT
    *,
    sum(cases) OVER before AS cases_before,
    sum(cpu_ms) OVER before AS cpu_ms_before
  FROM shards
  WHERE stage = 'hold'
  WINDOW before AS (PARTITION BY campaign, target ORDER BY round, shard ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
),
met AS (
  SELECT campaign, target, round, shard, cases, cpu_ms, cases_before, cpu_ms_before, explode(found) AS each FROM ordered
),
timed AS (
  SELECT
    *,
    coalesce(cases_before, 0) + each.at_case AS after_cases,
    -- The same share of the shard's time as of its cases.
    (coalesce(cpu_ms_before, 0) + cpu_ms * each.at_case / nullif(cases, 0)) / 1000 AS after_cpu_s
  FROM met
)
SELECT
  campaign,
  target,
  each.check AS check,
  each.invariant AS invariant,
  each.subject AS subject,
  array_join(each.shape, ' ') AS shape,
  min(round) + 1 AS round,
  min_by(shard, after_cases) AS shard,
  min(after_cases) AS after_cases,
  round(min(after_cpu_s), 1) AS after_cpu_s,
  sum(each.cases) AS cases,
  count(*) AS shards
FROM timed
GROUP BY campaign, target, each.check, each.invariant, each.subject, each.shape
ORDER BY campaign, target, after_cases, check, invariant, subject, shape
