-- What must not be found in the database of a campaign: a sentence, and the query that counts it as {n}.

-- {n} targets have a wrong counter of taken seats
SELECT COUNT(*) FROM target t WHERE t.is_check = 0 AND t.taken <> (SELECT COUNT(*) FROM request r
  WHERE r.target = t.id AND r.seat IS NOT NULL AND r.state IN ('offered', 'answered'))

-- {n} targets have more counted judgments than their most
SELECT COUNT(*) FROM target t WHERE t.is_check = 0 AND t.most < (SELECT COUNT(*) FROM judgment j
  WHERE j.target = t.id AND j.counted = 1 AND j.withdrawn_at IS NULL)

-- {n} seats of targets are held twice
SELECT COUNT(*) FROM (SELECT 1 FROM request WHERE state IN ('offered', 'answered') AND seat IS NOT NULL
  GROUP BY target, seat HAVING COUNT(*) > 1) AS twice

-- {n} seats are beyond the most of their target
SELECT COUNT(*) FROM request r JOIN target t ON t.id = r.target
  WHERE r.state IN ('offered', 'answered') AND (r.seat < 1 OR r.seat > t.most)

-- {n} targets are judged twice by one annotator
SELECT COUNT(*) FROM (SELECT 1 FROM judgment WHERE withdrawn_at IS NULL
  GROUP BY target, annotator HAVING COUNT(*) > 1) AS twice

-- {n} answered requests lack their one judgment
SELECT COUNT(*) FROM request r WHERE r.state = 'answered' AND 1 <> (SELECT COUNT(*) FROM judgment j
  WHERE j.request = r.id AND j.withdrawn_at IS NULL)

-- {n} judgments exist although their request is not answered
SELECT COUNT(*) FROM judgment j JOIN request r ON r.id = j.request
  WHERE j.withdrawn_at IS NULL AND r.state <> 'answered'

-- {n} judgments count without a seat, or have a seat and do not count
SELECT COUNT(*) FROM judgment j JOIN request r ON r.id = j.request JOIN target t ON t.id = j.target
  WHERE j.withdrawn_at IS NULL AND t.is_check = 0 AND (r.seat IS NOT NULL) <> (j.counted = 1)

-- {n} campaigns have reserved a different amount than their requests cost
SELECT COUNT(*) FROM campaign c WHERE c.reserved <> (SELECT COALESCE(SUM(r.cost), 0) FROM request r
  JOIN target t ON t.id = r.target WHERE t.campaign = c.id AND r.state IN ('offered', 'answered'))

-- {n} campaigns have spent a different amount than their answered requests cost
SELECT COUNT(*) FROM campaign c WHERE c.spent <> (SELECT COALESCE(SUM(r.cost), 0) FROM request r
  JOIN target t ON t.id = r.target WHERE t.campaign = c.id AND r.state = 'answered')

-- {n} campaigns have promised more than their budget
SELECT COUNT(*) FROM campaign WHERE reserved > budget OR spent > reserved OR spent < 0

-- {n} campaigns have gaps in the numbers of their judgments
SELECT COUNT(*) FROM campaign c WHERE c.seq <> (SELECT COUNT(*) FROM judgment j WHERE j.campaign = c.id)
  OR c.seq <> (SELECT COALESCE(MAX(j.seq), 0) FROM judgment j WHERE j.campaign = c.id)

-- {n} annotators have a wrong counter of judgments
SELECT COUNT(*) FROM annotator a WHERE a.n_answered <> (SELECT COUNT(*) FROM judgment j
  WHERE j.annotator = a.id AND j.withdrawn_at IS NULL)
