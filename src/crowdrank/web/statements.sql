-- Every statement that the service sends to its database, by name; web/collection reads them.
--
-- Values stand as :name, lists of values as IN :name, another statement of this file as {name}. PostgreSQL gets the line
-- behind `postgres:` too, such as a lock that SQLite's one writer does not need. A plus before a column, as in
-- +campaign = :campaign, keeps SQLite from an index that would give it the whole campaign.

-- Events

-- name: insert_event
INSERT INTO event (campaign, at, actor, kind, detail) VALUES (:campaign, :at, :actor, :kind, :detail)

-- Seats, requests and judgments: web/submitting

-- name: lock_target
SELECT id, wanted, taken, most, is_check FROM target WHERE id = :target
-- postgres: FOR UPDATE

-- name: take_seat
UPDATE target SET taken = taken + 1, {priority_taken}
  WHERE id = :target AND taken < wanted AND is_check = 0

-- name: take_wished_seat
-- the wished seat where nobody has it; the target is locked, so what the seat is found by cannot change meanwhile
{take_seat} RETURNING COALESCE((SELECT CAST(:wish AS BIGINT)
  WHERE NOT EXISTS (SELECT 1 FROM request r WHERE {holds_seat} AND r.seat = CAST(:wish AS BIGINT))), {lowest_seat}) AS seat

-- name: lowest_seat
-- a part of others: the lowest seat of a target that nobody has
(SELECT MIN(s.seat) FROM (SELECT 1 AS seat UNION ALL SELECT r.seat + 1 FROM request r
  WHERE {holds_seat} AND r.seat IS NOT NULL) s
  WHERE NOT EXISTS (SELECT 1 FROM request r WHERE {holds_seat} AND r.seat = s.seat))

-- name: holds_seat
-- a part of others
r.target = :target AND r.state IN ('offered', 'answered')

-- name: priority_taken
-- a part of others: what is judged goes behind what is not; targets from a million on are completed one after another
priority = priority + CASE WHEN priority >= 1000000 THEN 1 ELSE -1 END

-- name: want
UPDATE target SET wanted = :wanted WHERE id = :target

-- name: grades_of_target
SELECT j.answer FROM judgment j JOIN request r ON r.id = j.request
  WHERE j.target = :target AND j.counted = 1 AND j.withdrawn_at IS NULL ORDER BY r.seat

-- name: oldest_spare
SELECT j.submission, j.request FROM judgment j JOIN request r ON r.id = j.request
  JOIN annotator a ON a.id = j.annotator
  WHERE j.target = :target AND j.counted = 0 AND j.withdrawn_at IS NULL AND r.state = 'answered' AND r.seat IS
  NULL AND a.state <> 'removed' ORDER BY j.seq LIMIT 1

-- name: seat_request
UPDATE request SET seat = :seat WHERE id = :request

-- name: count_judgment
UPDATE judgment SET counted = 1 WHERE submission = :submission

-- name: practice
SELECT id, items, shown, answer, is_right, round FROM training WHERE annotator = :annotator ORDER BY id

-- name: begin_practice
INSERT INTO training (annotator, items, shown, round, offered_at) VALUES (:annotator, :items, :shown, :round, :now)
  RETURNING id, items, shown, answer, is_right, round

-- name: end_practice
UPDATE training SET answer = :answer, is_right = :right, ended_at = :now WHERE id = :practice AND answer IS NULL

-- name: set_trained
UPDATE annotator SET trained_at = COALESCE(trained_at, :now) WHERE id = :annotator

-- name: known_items
SELECT id, query, truth, explanation FROM item WHERE campaign = :campaign AND truth IS NOT NULL ORDER BY id

-- name: lock_annotator
SELECT id, name, kind, state, cost, n_answered, consented_at, joined_at, trained_at FROM annotator WHERE id = :annotator
-- postgres: FOR UPDATE

-- name: lapsed_requests
SELECT r.id, r.target, r.seat, r.cost FROM request r JOIN target t ON t.id = r.target
  WHERE r.state = 'offered' AND r.lease_until <= :now AND +t.campaign = :campaign ORDER BY r.lease_until LIMIT :limit

-- name: end_lapsed
UPDATE request SET state = 'expired', ended_at = :now, cost = 0
  WHERE id = :request AND state = 'offered' AND lease_until <= :now

-- name: reserve
UPDATE campaign SET reserved = reserved + :cost, changes = changes + :changes
  WHERE id = :campaign AND reserved + :cost <= budget

-- name: held_ids
SELECT id FROM request WHERE annotator = :annotator AND state = 'offered' ORDER BY id

-- name: open_targets
SELECT t.id, t.items, t.taken FROM target t
  WHERE t.campaign = :campaign AND t.taken < t.wanted AND t.is_check = 0 AND {unseen}
  ORDER BY t.priority DESC, t.shuffle LIMIT :limit
-- postgres: FOR UPDATE OF t SKIP LOCKED

-- name: meant_targets
SELECT t.id, t.items, t.taken FROM target t
  WHERE +t.campaign = :campaign AND t.id IN :targets AND t.taken < t.wanted AND t.is_check = 0 AND {unseen}
  ORDER BY t.priority DESC, t.shuffle LIMIT :limit
-- postgres: FOR UPDATE OF t SKIP LOCKED

-- name: judged_target
SELECT t.id, t.items, t.taken FROM target t WHERE t.campaign = :campaign AND t.is_check = 0 AND t.taken > 0
  AND t.taken = t.wanted AND t.wanted < t.most AND {unseen} ORDER BY t.taken, t.shuffle LIMIT 1
-- postgres: FOR UPDATE OF t SKIP LOCKED

-- name: unseen_check
SELECT t.id, t.items FROM target t
  WHERE t.campaign = :campaign AND t.is_check = 1 AND t.shuffle >= :draw AND {unseen}
  ORDER BY t.shuffle LIMIT 1

-- name: any_unseen
SELECT 1 FROM target t
  WHERE t.campaign = :campaign AND t.taken < t.wanted AND t.is_check = 0 AND {unseen} LIMIT 1

-- name: earliest_lease
SELECT MIN(o.lease_until) AS lease FROM request o JOIN target t ON t.id = o.target
  WHERE o.state = 'offered' AND +t.campaign = :campaign AND t.is_check = 0 AND {unseen}

-- name: insert_request
INSERT INTO request (target, annotator, seat, state, shown, offered_at, lease_until, lease_most, cost)
  VALUES (:target, :annotator, CASE WHEN :is_check = 0 THEN {lowest_seat} END, 'offered', :shown, :now, :until, :most,
  :cost)

-- name: stored_judgment
SELECT annotator, seq, counted, body_hash, withdrawn_at FROM judgment WHERE submission = :submission

-- name: any_stored
SELECT 1 FROM judgment WHERE submission IN :submissions LIMIT 1

-- name: requests
SELECT r.id, r.target, r.annotator, r.seat, r.state, r.shown, r.cost, r.lease_until, r.lease_most, r.reason,
  t.is_check FROM request r JOIN target t ON t.id = r.target WHERE r.id IN :requests AND r.annotator = :annotator

-- name: judgment_of_request
SELECT submission, seq, answer, counted, paid FROM judgment WHERE request = :request AND withdrawn_at IS NULL

-- name: other_request
SELECT id FROM request
  WHERE target = :target AND annotator = :annotator AND id <> :request AND state IN ('offered', 'answered',
  'skipped')

-- name: supersede_request
UPDATE request SET state = 'expired', reason = NULL WHERE id = :request

-- name: answer_request
UPDATE request SET state = 'answered', seat = :seat, ended_at = :now, cost = :cost, reason = NULL
  WHERE id = :request

-- name: last_withdrawn
SELECT submission FROM judgment
  WHERE target = :target AND request = :request AND withdrawn_at IS NOT NULL ORDER BY seq DESC LIMIT 1

-- name: next_seq
UPDATE campaign SET seq = seq + :n, spent = spent + :paid, reserved = reserved + :extra
  WHERE id = :campaign AND reserved + :extra <= budget RETURNING seq

-- name: insert_judgment
INSERT INTO judgment (submission, campaign, seq, request, annotator, target, answer, body_hash, seconds,
  counted, paid, at, replaces, source, comment)
  VALUES (:submission, :campaign, :seq, :request, :annotator, :target, :answer, :body_hash, :seconds, :counted,
  :paid, :at, :replaces, '', :comment)

-- name: set_comment
UPDATE judgment SET comment = :comment WHERE submission = :submission AND annotator = :annotator

-- name: count_answered
UPDATE annotator SET n_answered = n_answered + :n WHERE id = :annotator

-- name: own_judgment
SELECT submission, seq, request, target, withdrawn_at, counted, answer FROM judgment
  WHERE submission = :submission AND annotator = :annotator

-- name: n_later_judgments
SELECT COUNT(*) AS n FROM judgment WHERE annotator = :annotator AND seq > :seq AND withdrawn_at IS NULL

-- name: withdraw_judgment
UPDATE judgment SET withdrawn_at = :now WHERE submission = :submission AND withdrawn_at IS NULL

-- name: offer_again
UPDATE request
  SET state = 'offered', lease_until = :until, lease_most = :most, ended_at = NULL, reason = 'withdrawn'
  WHERE id = :request

-- name: leave_unpaid
UPDATE request SET cost = 0 WHERE id = :request

-- name: unspend
UPDATE campaign SET spent = spent - :cost, changes = changes + 1 WHERE id = :campaign

-- name: extend_lease
UPDATE request SET lease_until = :until WHERE id = :request AND state = 'offered'

-- name: skip_request
UPDATE request SET state = 'skipped', ended_at = :now, cost = 0, reason = :reason WHERE id = :request

-- name: count_skip
UPDATE target SET n_skipped = n_skipped + 1 WHERE id = :target

-- name: unseen
-- a part of others: that the annotator was not asked about the target t
NOT EXISTS (SELECT 1 FROM request r WHERE r.target = t.id AND r.annotator = :annotator AND r.state IN
  ('offered', 'answered', 'skipped'))

-- Tokens, invites and annotators: web/access

-- name: holder_of_token
SELECT 'owner' AS role, 0 AS annotator, '' AS name, 0 AS member FROM campaign
  WHERE id = :campaign AND owner_hash = :hash
  UNION ALL SELECT role, 0, name, id FROM member
  WHERE campaign = :campaign AND token_hash = :hash AND revoked_at IS NULL
  UNION ALL SELECT kind, id, name, 0 FROM annotator WHERE token_hash = :hash AND campaign = :campaign

-- name: invite_of_token
SELECT id, kind, name, annotator, uses_left, expires_at, revoked_at FROM invite
  WHERE token_hash = :hash AND campaign = :campaign

-- name: lock_invite
{invite_of_token}
-- postgres: FOR UPDATE

-- name: use_invite
UPDATE invite SET uses_left = uses_left - 1 WHERE id = :invite AND uses_left > 0

-- name: annotator_named
SELECT 1 FROM annotator WHERE campaign = :campaign AND name = :name

-- name: n_annotators
SELECT COUNT(*) AS n FROM annotator WHERE campaign = :campaign

-- name: insert_annotator
INSERT INTO annotator (campaign, name, kind, token_hash, cost, joined_at, external)
  VALUES (:campaign, :name, :kind, :hash, :cost, :now, :external) RETURNING id

-- name: external_known
SELECT 1 FROM annotator WHERE campaign = :campaign AND external = :external AND state <> 'removed' LIMIT 1

-- name: insert_invite
INSERT INTO invite (campaign, token_hash, kind, name, annotator, uses_left, expires_at, created_at)
  VALUES (:campaign, :hash, :kind, :name, :annotator, :uses, :expires, :now) RETURNING id

-- name: annotator_of_campaign
SELECT id, name, kind FROM annotator WHERE id = :annotator AND campaign = :campaign AND state <> 'removed'

-- name: replace_token
UPDATE annotator SET token_hash = :hash WHERE id = :annotator

-- name: revoke_invite
UPDATE invite SET revoked_at = COALESCE(revoked_at, :now) WHERE id = :invite AND campaign = :campaign

-- name: consent
UPDATE annotator SET consented_at = COALESCE(consented_at, :now) WHERE id = :annotator

-- name: set_annotator_state
UPDATE annotator SET state = :state WHERE id = :annotator AND campaign = :campaign

-- name: held_by_annotator
SELECT id, target, seat, cost FROM request WHERE annotator = :annotator AND state = 'offered'
  ORDER BY target LIMIT 500

-- name: end_request
UPDATE request SET state = 'expired', ended_at = :now, cost = 0 WHERE id = :request

-- name: counted_judgments
SELECT submission, request, target FROM judgment
  WHERE annotator = :annotator AND counted = 1 AND withdrawn_at IS NULL ORDER BY target LIMIT :limit

-- name: unseat_request
UPDATE request SET seat = NULL WHERE id = :request

-- name: uncount_judgment
UPDATE judgment SET counted = 0 WHERE submission = :submission

-- What annotators see: web/service, web/app

-- name: request_with_query
SELECT r.id, r.annotator, r.shown, r.lease_until, r.state, t.query FROM request r
  JOIN target t ON t.id = r.target WHERE r.id = :request

-- name: held_with_queries
SELECT r.id, r.shown, r.lease_until, t.query FROM request r JOIN target t ON t.id = r.target
  WHERE r.annotator = :annotator AND r.state = 'offered'

-- name: item_contents
SELECT id, content, content_type, query_content FROM item WHERE id IN :items AND +campaign = :campaign

-- name: annotator
SELECT id, name, kind, state, n_answered, consented_at, joined_at, external, trained_at, message FROM annotator WHERE id = :annotator

-- name: n_held
SELECT COUNT(*) AS n FROM request WHERE annotator = :annotator AND state = 'offered'

-- name: recent_judgments
SELECT j.submission, j.seq, j.request, j.answer, j.at, j.seconds, r.shown FROM judgment j
  JOIN request r ON r.id = j.request WHERE j.annotator = :annotator AND j.withdrawn_at IS NULL
  ORDER BY j.seq DESC LIMIT :limit

-- name: own_history
SELECT j.submission, j.seq, j.request, j.answer, j.comment, j.at, j.seconds, j.replaces, j.counted, r.shown,
  t.query FROM judgment j JOIN request r ON r.id = j.request JOIN target t ON t.id = j.target
  WHERE j.annotator = :annotator AND j.withdrawn_at IS NULL AND j.seq < :before ORDER BY j.seq DESC LIMIT :limit

-- name: comments
SELECT j.seq, j.submission, j.comment, j.at, a.name AS annotator, t.query, t.items FROM judgment j
  JOIN annotator a ON a.id = j.annotator JOIN target t ON t.id = j.target
  WHERE j.campaign = :campaign AND j.withdrawn_at IS NULL AND j.seq < :before
  AND LOWER(j.comment) LIKE :pattern ESCAPE '!' ORDER BY j.seq DESC LIMIT :limit

-- name: campaign_state
SELECT state, budget, reserved, revision FROM campaign WHERE id = :campaign

-- name: annotator_quality
SELECT q.row FROM quality q JOIN fit f ON f.id = q.fit
  WHERE f.campaign = :campaign AND f.question = '' AND q.annotator = :name AND f.finished_at IS NOT NULL
  AND f.error IS NULL
  ORDER BY f.id DESC LIMIT 1

-- name: latest_fit
-- of the question that the scheme goes by
SELECT id, seq, changes, method, summary, finished_at, is_final FROM fit
  WHERE campaign = :campaign AND question = '' AND finished_at IS NOT NULL AND error IS NULL ORDER BY id DESC LIMIT 1

-- name: fits_of_questions
SELECT id, question, seq, method, summary, finished_at, is_final FROM fit WHERE id IN (SELECT MAX(id) FROM fit
  WHERE campaign = :campaign AND question <> '' AND finished_at IS NOT NULL AND error IS NULL GROUP BY question)

-- name: lock_targets
SELECT t.id FROM target t WHERE t.id IN (SELECT r.target FROM request r WHERE r.id IN :requests) ORDER BY t.id
-- postgres: FOR UPDATE

-- name: request_shown
SELECT shown FROM request WHERE id = :request

-- What the owner sees: web/overview

-- name: campaign
SELECT name, kind, scheme, settings, budget, reserved, spent, state, seq, changes, revision, created_at
  FROM campaign WHERE id = :campaign

-- name: target_counts
-- PostgreSQL's sum of large integers is a decimal number
SELECT COUNT(*) AS n, CAST(COALESCE(SUM(wanted), 0) AS BIGINT) AS wanted, CAST(COALESCE(SUM(taken), 0) AS
  BIGINT) AS taken, COALESCE(SUM(CASE WHEN taken < wanted THEN 1 ELSE 0 END), 0) AS open, COALESCE(SUM(CASE
  WHEN n_skipped >= :skipped THEN 1 ELSE 0 END), 0) AS skipped FROM target
  WHERE campaign = :campaign AND is_check = 0

-- name: request_counts
SELECT r.state, COUNT(*) AS n FROM request r JOIN annotator a ON a.id = r.annotator
  WHERE a.campaign = :campaign GROUP BY r.state

-- name: judgment_counts
SELECT COALESCE(SUM(CASE WHEN withdrawn_at IS NOT NULL THEN 1 ELSE 0 END), 0) AS withdrawn, COALESCE(SUM(CASE
  WHEN counted = 0 AND withdrawn_at IS NULL THEN 1 ELSE 0 END), 0) AS spare, COALESCE(SUM(CASE WHEN paid = 0
  THEN 1 ELSE 0 END), 0) AS unpaid, COALESCE(SUM(CASE WHEN at >= :since AND source = '' THEN 1 ELSE 0 END), 0) AS
  recent, MIN(CASE WHEN at >= :since AND source = '' THEN at END) AS first FROM judgment WHERE campaign = :campaign

-- name: annotators
SELECT id, name, kind, state, n_answered, joined_at, message FROM annotator WHERE campaign = :campaign ORDER BY id

-- name: invites
SELECT id, kind, name, uses_left, expires_at, revoked_at FROM invite WHERE campaign = :campaign
  ORDER BY id DESC

-- name: last_fit_error
SELECT error FROM fit WHERE campaign = :campaign AND question = '' ORDER BY id DESC LIMIT 1

-- name: scores
SELECT row FROM score WHERE fit = :fit ORDER BY place

-- name: qualities
SELECT row FROM quality WHERE fit = :fit ORDER BY place

-- name: skipped_targets
SELECT t.id, t.query, t.items, t.n_skipped FROM target t
  WHERE t.campaign = :campaign AND t.n_skipped >= :skipped ORDER BY t.n_skipped DESC, t.id LIMIT 500

-- name: skip_reasons
SELECT r.target, r.reason FROM request r JOIN target t ON t.id = r.target
  WHERE t.campaign = :campaign AND t.n_skipped >= :skipped AND r.state = 'skipped' AND r.reason <> ''
  ORDER BY r.id LIMIT 2000

-- name: spare_judgments
SELECT j.seq, j.at, j.paid, a.name AS annotator, t.query, t.items FROM judgment j
  JOIN annotator a ON a.id = j.annotator JOIN target t ON t.id = j.target
  WHERE j.campaign = :campaign AND j.counted = 0 AND j.withdrawn_at IS NULL
  ORDER BY j.seq DESC LIMIT 500

-- name: names_of_items
SELECT id, item FROM item WHERE id IN :items

-- name: item_ids
SELECT id, item FROM item WHERE campaign = :campaign

-- name: check_judgments
SELECT a.name, j.answer, t.items FROM judgment j JOIN target t ON t.id = j.target
  JOIN annotator a ON a.id = j.annotator
  WHERE j.campaign = :campaign AND t.is_check = 1 AND j.withdrawn_at IS NULL ORDER BY j.seq

-- name: truths
SELECT id, truth FROM item WHERE campaign = :campaign AND truth IS NOT NULL

-- Campaigns and their states: web/setup

-- name: campaign_named
SELECT id, settings, file_settings, revision, items_hash, reserved FROM campaign WHERE name = :name

-- name: keep_file_settings
UPDATE campaign SET file_settings = :settings WHERE id = :campaign

-- name: touch_campaign
UPDATE campaign SET seq = seq WHERE id = :campaign

-- name: campaign_names
SELECT name FROM campaign ORDER BY id

-- name: replace_owner
UPDATE campaign SET owner_hash = :hash WHERE id = :campaign

-- name: members
SELECT id, name, role, created_at, revoked_at FROM member WHERE campaign = :campaign ORDER BY id

-- name: member_named
SELECT id, name, role FROM member WHERE campaign = :campaign AND name = :name AND revoked_at IS NULL

-- name: insert_member
INSERT INTO member (campaign, name, role, token_hash, created_at)
  VALUES (:campaign, :name, :role, :hash, :now) RETURNING id

-- name: revoke_member
UPDATE member SET revoked_at = :now WHERE id = :member AND campaign = :campaign AND revoked_at IS NULL

-- name: insert_campaign
INSERT INTO campaign (name, kind, scheme, settings, items_hash, owner_hash, budget, created_at)
  VALUES (:name, :kind, :scheme, :settings, :items_hash, :owner_hash, :budget, :now) RETURNING id

-- name: update_settings
UPDATE campaign SET settings = :settings, budget = :budget, scheme = :scheme WHERE id = :campaign

-- name: raise_most
UPDATE target SET most = :most WHERE campaign = :campaign AND is_check = 0 AND most < :most

-- name: latest_event
SELECT MAX(at) AS at FROM event WHERE campaign = :campaign

-- name: raise_wanted
UPDATE target SET wanted = :wanted WHERE campaign = :campaign AND is_check = 0 AND wanted < :wanted

-- name: lock_campaign
SELECT state FROM campaign WHERE id = :campaign
-- postgres: FOR UPDATE

-- name: set_campaign_state
UPDATE campaign SET state = :state, changes = changes + 1 WHERE id = :campaign

-- name: held_in_campaign
SELECT r.id, r.target, r.seat, r.cost FROM request r JOIN target t ON t.id = r.target
  WHERE t.campaign = :campaign AND r.state = 'offered' ORDER BY r.target, r.id
-- postgres: FOR UPDATE OF t

-- name: free_seat
UPDATE target SET taken = taken - 1, priority = priority + CASE WHEN priority > 1000000 THEN -1 ELSE 1 END
  WHERE id = :target

-- name: give_back
UPDATE campaign SET reserved = reserved - :cost WHERE id = :campaign

-- name: any_open_target
SELECT 1 FROM target WHERE campaign = :campaign AND taken < wanted AND is_check = 0 LIMIT 1

-- name: any_held
SELECT 1 FROM request r JOIN target t ON t.id = r.target
  WHERE +t.campaign = :campaign AND r.state = 'offered' LIMIT 1

-- Fits: web/refit, web/refit_worker

-- name: fit_needed
SELECT c.seq, c.changes, c.state, f.seq AS fit_seq, f.changes AS fit_changes, f.is_final
  FROM campaign c
  LEFT JOIN fit f ON f.id = (SELECT MAX(g.id) FROM fit g WHERE g.campaign = c.id AND g.question = ''
  AND g.finished_at IS NOT NULL AND g.error IS NULL) WHERE c.id = :campaign

-- name: begin_fit
INSERT INTO fit (campaign, question, seq, changes, started_at, is_final)
  VALUES (:campaign, :question, :seq, :changes, :now, :final) RETURNING id

-- name: finish_fit
UPDATE fit SET finished_at = :now, method = :method, summary = :summary, error = :error WHERE id = :fit

-- name: forget_scores
DELETE FROM score WHERE fit <= :fit AND fit IN (SELECT id FROM fit WHERE campaign = :campaign)

-- name: forget_qualities
DELETE FROM quality WHERE fit <= :fit AND fit IN (SELECT id FROM fit WHERE campaign = :campaign)

-- name: forget_fits
DELETE FROM fit WHERE id <= :fit AND campaign = :campaign

-- name: nth_last_fit
SELECT id FROM fit WHERE campaign = :campaign AND question = '' AND error IS NULL AND finished_at IS NOT NULL
  ORDER BY id DESC LIMIT 1 OFFSET :kept

-- name: open_target_keys
SELECT id, key FROM target WHERE campaign = :campaign AND taken < wanted AND is_check = 0

-- name: close_target
UPDATE target
  SET wanted = CASE WHEN taken = 0 AND :unjudged = 1 THEN 1 ELSE taken END, priority = -1000000
  WHERE id = :target AND taken < wanted

-- name: lock_target_of_key
SELECT id, taken, most FROM target WHERE campaign = :campaign AND key = :key
-- postgres: FOR UPDATE

-- name: want_first
UPDATE target SET wanted = :wanted, priority = :priority WHERE id = :target

-- name: fit_summary
SELECT summary FROM fit WHERE id = :fit

-- name: keep_fit_summary
UPDATE fit SET summary = :summary WHERE id = :fit

-- name: scores_of_items
SELECT item, row FROM score WHERE fit = :fit AND item IN :items ORDER BY item

-- name: keep_score
UPDATE score SET row = :row WHERE fit = :fit AND item = :item

-- name: items
SELECT id, query, item, truth FROM item WHERE campaign = :campaign ORDER BY id

-- name: offered_requests
SELECT t.query, t.items, a.name AS annotator FROM request r JOIN target t ON t.id = r.target
  JOIN annotator a ON a.id = r.annotator
  WHERE +t.campaign = :campaign AND t.is_check = 0 AND r.state = 'offered'

-- name: active_annotators
SELECT id, name, cost FROM annotator
  WHERE campaign = :campaign AND state = 'active' AND token_hash IS NOT NULL ORDER BY id

-- name: taken_seats
SELECT items, taken FROM target WHERE campaign = :campaign AND is_check = 0 AND taken > 0

-- Files in and out: web/transfer

-- name: judgment_page
{judgments_with_names} WHERE j.campaign = :campaign AND j.seq > :after AND j.seq <= :upto
  ORDER BY j.seq LIMIT :limit

-- name: external_ids
SELECT name, external FROM annotator WHERE campaign = :campaign AND external <> ''

-- name: skips
-- the columns of a judgment, blank where there is none
SELECT r.id, r.reason, r.ended_at AS at, a.name AS annotator, a.kind AS annotator_kind, t.query, t.items, t.is_check,
  NULL AS seq, NULL AS submission, NULL AS answer, '' AS comment, NULL AS seconds, 0 AS counted, 0 AS paid,
  NULL AS withdrawn_at, NULL AS replaces
  FROM request r JOIN target t ON t.id = r.target JOIN annotator a ON a.id = r.annotator
  WHERE t.campaign = :campaign AND r.state = 'skipped' AND r.id > :after ORDER BY r.id LIMIT :limit

-- name: touched_judgments
-- the signs keep SQLite from going through all judgments by their numbers
{judgments_with_names}
  WHERE j.target IN (SELECT n.target FROM judgment n WHERE n.campaign = :campaign AND n.seq > :after AND n.seq
  <= :upto) AND +j.seq <= :upto ORDER BY +j.seq

-- name: judgments_of_targets
{judgments_with_names} WHERE j.target IN :targets AND +j.seq <= :upto ORDER BY +j.seq

-- name: targets_of_queries
SELECT id, items FROM target WHERE campaign = :campaign AND query IN :queries

-- name: lock_annotator_named
SELECT id FROM annotator WHERE campaign = :campaign AND name = :name
-- postgres: FOR UPDATE

-- name: insert_foreign_annotator
INSERT INTO annotator (campaign, name, kind, cost, joined_at)
  VALUES (:campaign, :name, :kind, 0, :now) RETURNING id

-- name: any_stored_as
SELECT 1 FROM judgment WHERE submission = :submission

-- name: request_of_annotator
SELECT id, state FROM request
  WHERE target = :target AND annotator = :annotator AND state IN ('offered', 'answered', 'skipped')

-- name: expire_request
UPDATE request SET state = 'expired' WHERE id = :request

-- name: want_one_more
UPDATE target SET wanted = wanted + 1 WHERE id = :target AND wanted < most

-- name: insert_answered_request
INSERT INTO request (target, annotator, seat, state, shown, offered_at, lease_until, lease_most, ended_at,
  cost) VALUES (:target, :annotator, :seat, 'answered', :shown, :at, :at, :at, :at, 0) RETURNING id

-- name: one_more_seq
UPDATE campaign SET seq = seq + 1 WHERE id = :campaign RETURNING seq

-- name: insert_imported_judgment
INSERT INTO judgment (submission, campaign, seq, request, annotator, target, answer, body_hash, seconds,
  counted, paid, at, withdrawn_at, source, comment)
  VALUES (:submission, :campaign, :seq, :request, :annotator, :target, :answer, :body_hash, :seconds, :counted,
  :paid, :at, :withdrawn, :source, :comment)

-- name: set_truth
UPDATE item SET truth = :truth WHERE campaign = :campaign AND query = :query AND item = :item

-- name: judgments_with_names
-- a part of others
SELECT j.seq, j.submission, j.answer, j.comment, j.seconds, j.counted, j.paid, j.at, j.withdrawn_at,
  j.replaces, a.name
  AS annotator, a.kind AS annotator_kind, t.query, t.items, t.is_check FROM judgment j
  JOIN annotator a ON a.id = j.annotator JOIN target t ON t.id = j.target

-- name: n_named_queries
SELECT COUNT(*) AS n FROM item WHERE campaign = :campaign AND query <> ''

-- name: all_contents
SELECT query, item, content, query_content FROM item WHERE campaign = :campaign

-- Running a campaign: web/steering

-- name: items_page
SELECT i.id, i.query, i.item, i.content, i.content_type, i.query_content, i.truth, s.row AS scored, s.n
  FROM item i LEFT JOIN score s ON s.fit = :fit AND s.item = i.id WHERE {found_items}
  ORDER BY CASE WHEN s.fit IS NULL THEN 1 ELSE 0 END, :sign * CASE CAST(:sort AS TEXT) WHEN 'rank' THEN s.place
  WHEN 'score' THEN s.value WHEN 'doubt' THEN s.width WHEN 'judged' THEN s.n END, CASE WHEN CAST(:sort AS TEXT) = 'item'
  AND :sign = 1 THEN i.item END, CASE WHEN CAST(:sort AS TEXT) = 'item' AND :sign = -1 THEN i.item END DESC, i.id
  LIMIT :limit OFFSET :offset

-- name: n_items_found
SELECT COUNT(*) AS n FROM item i LEFT JOIN score s ON s.fit = :fit AND s.item = i.id WHERE {found_items}

-- name: found_items
-- a part of others
i.campaign = :campaign AND (CAST(:search AS TEXT) = '' OR LOWER(i.item) LIKE :like OR LOWER(i.content) LIKE :like
  OR LOWER(i.query) LIKE :like OR LOWER(i.query_content) LIKE :like) AND (CAST(:which AS TEXT) = 'all' OR s.fit IS NULL)

-- name: item
SELECT id, query, item, content, content_type, query_content, truth FROM item WHERE id = :item AND campaign = :campaign

-- name: some_items
SELECT id, query, item, content, content_type, query_content FROM item WHERE id IN :items

-- name: mend_item
UPDATE item SET content = :content, content_type = :content_type, truth = :truth WHERE id = :item

-- name: mend_query
UPDATE item SET query_content = :query_content
  WHERE campaign = :campaign AND query = :query AND query_content <> :query_content

-- name: set_truth_of_item
UPDATE item SET truth = :truth WHERE id = :item

-- name: skips_of_targets
SELECT r.target, r.reason, r.ended_at, t.items, a.name AS annotator FROM request r JOIN target t ON t.id = r.target
  JOIN annotator a ON a.id = r.annotator WHERE r.target IN :targets AND r.state = 'skipped' ORDER BY r.id

-- name: answers_of_targets
SELECT j.target, j.answer, j.at, j.comment, t.items, a.id AS annotator_id, a.name AS annotator FROM judgment j
  JOIN target t ON t.id = j.target JOIN annotator a ON a.id = j.annotator
  WHERE j.target IN :targets AND j.withdrawn_at IS NULL ORDER BY j.seq

-- name: target
SELECT id, query, items FROM target WHERE id = :target AND campaign = :campaign

-- name: targets_of_keys
SELECT id, query, items, key FROM target WHERE campaign = :campaign AND key IN :keys

-- name: items_named
SELECT id, query, item FROM item WHERE campaign = :campaign AND item IN :names

-- name: reported_targets
SELECT t.id, t.query, t.items, t.key FROM target t WHERE t.campaign = :campaign AND t.n_skipped > 0 AND (t.n_skipped >= 3
  OR EXISTS (SELECT 1 FROM request r WHERE r.target = t.id AND r.state = 'skipped' AND r.reason <> ''))
  ORDER BY t.n_skipped DESC, t.id LIMIT 100

-- name: reviews
SELECT v.target, v.answer, v.shown, v.note, v.actor, v.at, t.query, t.items FROM review v
  JOIN target t ON t.id = v.target WHERE v.campaign = :campaign
  AND v.id = (SELECT MAX(w.id) FROM review w WHERE w.target = v.target) ORDER BY v.id

-- name: insert_review
INSERT INTO review (campaign, target, answer, shown, note, actor, at)
  VALUES (:campaign, :target, :answer, :shown, :note, :actor, :at)

-- name: set_message
UPDATE annotator SET message = :message WHERE id = :annotator AND campaign = :campaign

-- name: owed
SELECT a.id, a.name, a.kind, a.external, r.n, r.owed FROM annotator a JOIN (SELECT annotator, COUNT(*) AS n,
  CAST(COALESCE(SUM(cost), 0) AS BIGINT) AS owed FROM request WHERE state = 'answered' GROUP BY annotator) r
  ON r.annotator = a.id WHERE a.campaign = :campaign ORDER BY a.id

-- name: forget_consents
UPDATE annotator SET consented_at = NULL WHERE campaign = :campaign

-- name: note_revision
UPDATE campaign SET revision = revision + 1 WHERE id = :campaign

-- name: note_change
UPDATE campaign SET changes = changes + 1 WHERE id = :campaign

-- name: want_all
UPDATE target SET most = CASE WHEN taken > :most THEN taken ELSE :most END,
  wanted = CASE WHEN taken > :wanted THEN taken ELSE :wanted END WHERE campaign = :campaign AND is_check = 0

-- name: taken_targets
SELECT id FROM target WHERE campaign = :campaign AND is_check = 0 AND taken > 0 ORDER BY id

-- name: events
SELECT id, at, actor, kind, detail FROM event WHERE campaign = :campaign AND id < :before ORDER BY id DESC LIMIT :limit

-- name: insert_course
-- where judgments are many, only once they are 2 % more
INSERT INTO course (campaign, seq, spent, doubt, alpha, at)
  SELECT c.id, f.seq, c.spent, CAST(:doubt AS DOUBLE PRECISION), CAST(:alpha AS DOUBLE PRECISION), CAST(:at AS BIGINT)
  FROM campaign c JOIN fit f ON f.campaign = c.id WHERE c.id = :campaign AND f.id = :fit AND NOT EXISTS
  (SELECT 1 FROM course WHERE campaign = :campaign AND seq > 50 AND seq * 50 > f.seq * 49)

-- name: course
SELECT seq, spent, doubt, alpha FROM course WHERE campaign = :campaign ORDER BY id

-- Webhooks: web/webhooks

-- name: told
SELECT told_seq, told_event FROM campaign WHERE id = :campaign

-- name: let_go_on
SELECT detail FROM event WHERE campaign = :campaign AND kind = 'active' ORDER BY id

-- name: events_after
SELECT id, at, actor, kind FROM event WHERE campaign = :campaign AND id > :after AND kind IN :kinds ORDER BY id

-- name: note_told
UPDATE campaign SET told_seq = :seq, told_event = :event WHERE id = :campaign
