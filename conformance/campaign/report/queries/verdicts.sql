-- Results of cases, by target, its version, and check
SELECT
  campaign,
  target,
  target_version,
  each.check AS check,
  sum(each.cases) AS cases,
  coalesce(sum(each.cases) FILTER (WHERE each.result = 'PASS'), 0) AS pass,
  coalesce(sum(each.cases) FILTER (WHERE each.result = 'FAIL'), 0) AS fail,
  coalesce(sum(each.cases) FILTER (WHERE each.result = 'WARN'), 0) AS warn,
  coalesce(sum(each.cases) FILTER (WHERE each.result = 'NOTE'), 0) AS note,
  coalesce(sum(each.cases) FILTER (WHERE each.result = 'UNKNOWN'), 0) AS unknown,
  coalesce(sum(each.cases) FILTER (WHERE each.result = 'SKIP'), 0) AS skip
FROM (SELECT campaign, target, target_version, explode(counts) AS each FROM shards)
WHERE each.invariant = ''  -- of the case as a whole
GROUP BY campaign, target, target_version, each.check
ORDER BY campaign, target, target_version, check
