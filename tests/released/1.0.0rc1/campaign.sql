CREATE TABLE campaign (
	id BIGSERIAL NOT NULL, 
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	scheme TEXT NOT NULL, 
	settings TEXT NOT NULL, 
	items_hash TEXT NOT NULL, 
	owner_hash TEXT NOT NULL, 
	budget BIGINT NOT NULL, 
	reserved BIGINT DEFAULT '0' NOT NULL, 
	spent BIGINT DEFAULT '0' NOT NULL, 
	state TEXT DEFAULT 'open' NOT NULL, 
	seq BIGINT DEFAULT '0' NOT NULL, 
	changes BIGINT DEFAULT '0' NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT within_budget CHECK (reserved >= 0 AND reserved <= budget), 
	CONSTRAINT spent_reserved CHECK (spent >= 0 AND spent <= reserved), 
	UNIQUE (name)
);
CREATE TABLE annotator (
	id BIGSERIAL NOT NULL, 
	campaign BIGINT NOT NULL, 
	name TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	token_hash TEXT, 
	cost BIGINT NOT NULL, 
	state TEXT DEFAULT 'active' NOT NULL, 
	n_answered BIGINT DEFAULT '0' NOT NULL, 
	joined_at BIGINT NOT NULL, 
	consented_at BIGINT, 
	PRIMARY KEY (id), 
	UNIQUE (campaign, name), 
	FOREIGN KEY(campaign) REFERENCES campaign (id), 
	UNIQUE (token_hash)
);
CREATE TABLE event (
	id BIGSERIAL NOT NULL, 
	campaign BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	actor TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	detail TEXT DEFAULT '{}' NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(campaign) REFERENCES campaign (id)
);
CREATE TABLE fit (
	id BIGSERIAL NOT NULL, 
	campaign BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	changes BIGINT NOT NULL, 
	method TEXT DEFAULT '' NOT NULL, 
	summary TEXT DEFAULT '{}' NOT NULL, 
	started_at BIGINT NOT NULL, 
	finished_at BIGINT, 
	error TEXT, 
	is_final BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(campaign) REFERENCES campaign (id)
);
CREATE TABLE invite (
	id BIGSERIAL NOT NULL, 
	campaign BIGINT NOT NULL, 
	token_hash TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	name TEXT, 
	uses_left BIGINT NOT NULL, 
	expires_at BIGINT NOT NULL, 
	revoked_at BIGINT, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT uses CHECK (uses_left >= 0), 
	FOREIGN KEY(campaign) REFERENCES campaign (id), 
	UNIQUE (token_hash)
);
CREATE TABLE item (
	id BIGSERIAL NOT NULL, 
	campaign BIGINT NOT NULL, 
	query TEXT NOT NULL, 
	item TEXT NOT NULL, 
	content TEXT NOT NULL, 
	content_type TEXT NOT NULL, 
	query_content TEXT DEFAULT '' NOT NULL, 
	truth DOUBLE PRECISION, 
	PRIMARY KEY (id), 
	UNIQUE (campaign, query, item), 
	FOREIGN KEY(campaign) REFERENCES campaign (id)
);
CREATE TABLE target (
	id BIGSERIAL NOT NULL, 
	campaign BIGINT NOT NULL, 
	query TEXT NOT NULL, 
	items TEXT NOT NULL, 
	key TEXT NOT NULL, 
	wanted BIGINT NOT NULL, 
	taken BIGINT DEFAULT '0' NOT NULL, 
	most BIGINT NOT NULL, 
	priority DOUBLE PRECISION DEFAULT '0' NOT NULL, 
	shuffle BIGINT NOT NULL, 
	is_check BIGINT DEFAULT '0' NOT NULL, 
	n_skipped BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (campaign, key), 
	CONSTRAINT seats CHECK (taken >= 0 AND taken <= wanted AND wanted <= most), 
	FOREIGN KEY(campaign) REFERENCES campaign (id)
);
CREATE TABLE quality (
	fit BIGINT NOT NULL, 
	annotator TEXT NOT NULL, 
	place BIGINT NOT NULL, 
	row TEXT NOT NULL, 
	PRIMARY KEY (fit, annotator), 
	FOREIGN KEY(fit) REFERENCES fit (id)
);
CREATE TABLE request (
	id BIGSERIAL NOT NULL, 
	target BIGINT NOT NULL, 
	annotator BIGINT NOT NULL, 
	seat BIGINT, 
	state TEXT NOT NULL, 
	shown TEXT NOT NULL, 
	offered_at BIGINT NOT NULL, 
	lease_until BIGINT NOT NULL, 
	lease_most BIGINT NOT NULL, 
	ended_at BIGINT, 
	cost BIGINT NOT NULL, 
	reason TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(target) REFERENCES target (id), 
	FOREIGN KEY(annotator) REFERENCES annotator (id)
);
CREATE TABLE score (
	fit BIGINT NOT NULL, 
	item BIGINT NOT NULL, 
	place BIGINT NOT NULL, 
	row TEXT NOT NULL, 
	PRIMARY KEY (fit, item), 
	FOREIGN KEY(fit) REFERENCES fit (id)
);
CREATE TABLE judgment (
	submission TEXT NOT NULL, 
	campaign BIGINT NOT NULL, 
	seq BIGINT NOT NULL, 
	request BIGINT NOT NULL, 
	annotator BIGINT NOT NULL, 
	target BIGINT NOT NULL, 
	answer TEXT NOT NULL, 
	body_hash TEXT NOT NULL, 
	seconds DOUBLE PRECISION, 
	counted BIGINT NOT NULL, 
	paid BIGINT DEFAULT '1' NOT NULL, 
	at BIGINT NOT NULL, 
	withdrawn_at BIGINT, 
	replaces TEXT, 
	source TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (submission), 
	UNIQUE (campaign, seq), 
	FOREIGN KEY(campaign) REFERENCES campaign (id), 
	FOREIGN KEY(request) REFERENCES request (id), 
	FOREIGN KEY(annotator) REFERENCES annotator (id), 
	FOREIGN KEY(target) REFERENCES target (id)
);
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO "campaign" ("id", "name", "kind", "scheme", "settings", "items_hash", "owner_hash", "budget", "reserved", "spent", "state", "seq", "changes", "created_at") VALUES (1, 'test', 'grade', '3-overlap', '{"name": "test", "kind": "grade", "scheme": "3-overlap", "params": {}, "question": "How good is this?", "guidelines": "", "budget": 100000, "cost": {"person": 1, "program": 1}, "overlap_max": 3, "lease_seconds": 60, "open_limit": 1, "grades": ["Bad", "Fair", "Good", "Excellent"], "ties": true, "set_size": 5, "sets_per_item": 1, "checks": 0.0, "method": "auto", "least_gain": 0.0, "close_when_done": false, "show_quality": false, "seed": 0}', '53bafbb03837a1422450eeeb5bdd8d8f18ea0625fbb2363f3e139efb6c2186ab', '34c00c085e3e1db7d127bafbf8d2052584405c18caf4f97016f7c622ff4e4c17', 100000, 24, 24, 'open', 24, 0, 1794966391835942);
INSERT INTO "annotator" ("id", "campaign", "name", "kind", "token_hash", "cost", "state", "n_answered", "joined_at", "consented_at") VALUES (1, 1, 'ann', 'program', 'fcaf54fe5e36dd3ade54275885a380f08131b867e2c6d21c2c283f4d2fe00652', 1, 'active', 8, 1794966393844353, NULL);
INSERT INTO "annotator" ("id", "campaign", "name", "kind", "token_hash", "cost", "state", "n_answered", "joined_at", "consented_at") VALUES (2, 1, 'bob', 'program', '9e43ed01e36963db2542cc2a40bbb452609e37607a20fd7c262101e083f72696', 1, 'active', 8, 1794966394085956, NULL);
INSERT INTO "annotator" ("id", "campaign", "name", "kind", "token_hash", "cost", "state", "n_answered", "joined_at", "consented_at") VALUES (3, 1, 'cid', 'program', 'ae084b558a5a62ac472bf1006901ccc6d7c7c3afdc47b7780ea7c1418bda4574', 1, 'active', 8, 1794966394291365, NULL);
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (1, 1, 1794966391835942, 'owner', 'created', '{"n_items": 12}');
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (2, 1, 1794966393817155, 'owner', 'invite', '{"invite": 1, "kind": "program", "uses": 1}');
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (3, 1, 1794966393844353, 'annotator 1', 'joined', '{"kind": "program"}');
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (4, 1, 1794966394072843, 'owner', 'invite', '{"invite": 2, "kind": "program", "uses": 1}');
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (5, 1, 1794966394085956, 'annotator 2', 'joined', '{"kind": "program"}');
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (6, 1, 1794966394277466, 'owner', 'invite', '{"invite": 3, "kind": "program", "uses": 1}');
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (7, 1, 1794966394291365, 'annotator 3', 'joined', '{"kind": "program"}');
INSERT INTO "event" ("id", "campaign", "at", "actor", "kind", "detail") VALUES (8, 1, 1794966394576660, 'owner', 'export', '{"format": "jsonl", "which": "counted"}');
INSERT INTO "invite" ("id", "campaign", "token_hash", "kind", "name", "uses_left", "expires_at", "revoked_at", "created_at") VALUES (1, 1, '4ec1c025af96040641409849e045e8fbdfcbfdc095602dfd5555bc1d8b283aac', 'program', NULL, 0, 1797558393817155, NULL, 1794966393817155);
INSERT INTO "invite" ("id", "campaign", "token_hash", "kind", "name", "uses_left", "expires_at", "revoked_at", "created_at") VALUES (2, 1, '8028adb81f281a759dcf57e26a5830629411c437ab02ac964c51408d15030403', 'program', NULL, 0, 1797558394072843, NULL, 1794966394072843);
INSERT INTO "invite" ("id", "campaign", "token_hash", "kind", "name", "uses_left", "expires_at", "revoked_at", "created_at") VALUES (3, 1, 'c1bae528d52c58650dbe7a30a53be9edf3c2945412178bd761bd56728a31a74b', 'program', NULL, 0, 1797558394277466, NULL, 1794966394277466);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (1, 1, 'q0', 'i0', 'x', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (2, 1, 'q1', 'i1', 'xx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (3, 1, 'q0', 'i2', 'xxx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (4, 1, 'q1', 'i3', 'xxxx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (5, 1, 'q0', 'i4', 'x', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (6, 1, 'q1', 'i5', 'xx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (7, 1, 'q0', 'i6', 'xxx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (8, 1, 'q1', 'i7', 'xxxx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (9, 1, 'q0', 'i8', 'x', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (10, 1, 'q1', 'i9', 'xx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (11, 1, 'q0', 'i10', 'xxx', 'text', '', NULL);
INSERT INTO "item" ("id", "campaign", "query", "item", "content", "content_type", "query_content", "truth") VALUES (12, 1, 'q1', 'i11', 'xxxx', 'text', '', NULL);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (5, 1, 'q0', '[5]', '5', 3, 2, 3,  -2.0, 93002428, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (3, 1, 'q0', '[3]', '3', 3, 2, 3,  -2.0, 189028527, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (7, 1, 'q0', '[7]', '7', 3, 2, 3,  -2.0, 377551111, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (9, 1, 'q0', '[9]', '9', 3, 2, 3,  -2.0, 423453042, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (11, 1, 'q0', '[11]', '11', 3, 2, 3,  -2.0, 512177928, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (8, 1, 'q1', '[8]', '8', 3, 2, 3,  -2.0, 586948876, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (12, 1, 'q1', '[12]', '12', 3, 2, 3,  -2.0, 845587747, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (1, 1, 'q0', '[1]', '1', 3, 2, 3,  -2.0, 981973024, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (2, 1, 'q1', '[2]', '2', 3, 2, 3,  -2.0, 1148151316, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (4, 1, 'q1', '[4]', '4', 3, 2, 3,  -2.0, 1201175862, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (6, 1, 'q1', '[6]', '6', 3, 2, 3,  -2.0, 1249664254, 0, 0);
INSERT INTO "target" ("id", "campaign", "query", "items", "key", "wanted", "taken", "most", "priority", "shuffle", "is_check", "n_skipped") VALUES (10, 1, 'q1', '[10]', '10', 3, 2, 3,  -2.0, 1539020441, 0, 0);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (1, 5, 1, 1, 'answered', '{"order": [5], "seed": 583096307}', 1794966393865000, 1794966453865000, 1794966573865000, 1794966393928571, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (2, 3, 1, 1, 'answered', '{"order": [3], "seed": 1784453053}', 1794966393865000, 1794966453865000, 1794966573865000, 1794966393928571, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (3, 7, 1, 1, 'answered', '{"order": [7], "seed": 658934931}', 1794966393865000, 1794966453865000, 1794966573865000, 1794966393928571, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (4, 9, 1, 1, 'answered', '{"order": [9], "seed": 52655277}', 1794966393865000, 1794966453865000, 1794966573865000, 1794966393928571, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (5, 11, 1, 1, 'answered', '{"order": [11], "seed": 265927340}', 1794966393955281, 1794966453955281, 1794966573955281, 1794966393978679, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (6, 8, 1, 1, 'answered', '{"order": [8], "seed": 167336124}', 1794966393955281, 1794966453955281, 1794966573955281, 1794966393978679, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (7, 12, 1, 1, 'answered', '{"order": [12], "seed": 313203109}', 1794966393955281, 1794966453955281, 1794966573955281, 1794966393978679, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (8, 1, 1, 1, 'answered', '{"order": [1], "seed": 1327941041}', 1794966393955281, 1794966453955281, 1794966573955281, 1794966393978679, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (9, 2, 2, 1, 'answered', '{"order": [2], "seed": 1276420429}', 1794966394115277, 1794966454115277, 1794966574115277, 1794966394144162, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (10, 4, 2, 1, 'answered', '{"order": [4], "seed": 644748847}', 1794966394115277, 1794966454115277, 1794966574115277, 1794966394144162, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (11, 6, 2, 1, 'answered', '{"order": [6], "seed": 608646524}', 1794966394115277, 1794966454115277, 1794966574115277, 1794966394144162, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (12, 10, 2, 1, 'answered', '{"order": [10], "seed": 1458587559}', 1794966394115277, 1794966454115277, 1794966574115277, 1794966394144162, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (13, 5, 2, 2, 'answered', '{"order": [5], "seed": 2018297438}', 1794966394160821, 1794966454160821, 1794966574160821, 1794966394187280, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (14, 3, 2, 2, 'answered', '{"order": [3], "seed": 578694457}', 1794966394160821, 1794966454160821, 1794966574160821, 1794966394187280, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (15, 7, 2, 2, 'answered', '{"order": [7], "seed": 254272347}', 1794966394160821, 1794966454160821, 1794966574160821, 1794966394187280, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (16, 9, 2, 2, 'answered', '{"order": [9], "seed": 1821404602}', 1794966394160821, 1794966454160821, 1794966574160821, 1794966394187280, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (17, 11, 3, 2, 'answered', '{"order": [11], "seed": 1880594039}', 1794966394307965, 1794966454307965, 1794966574307965, 1794966394331625, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (18, 8, 3, 2, 'answered', '{"order": [8], "seed": 146326496}', 1794966394307965, 1794966454307965, 1794966574307965, 1794966394331625, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (19, 12, 3, 2, 'answered', '{"order": [12], "seed": 1044455838}', 1794966394307965, 1794966454307965, 1794966574307965, 1794966394331625, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (20, 1, 3, 2, 'answered', '{"order": [1], "seed": 1514845158}', 1794966394307965, 1794966454307965, 1794966574307965, 1794966394331625, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (21, 2, 3, 2, 'answered', '{"order": [2], "seed": 1629124686}', 1794966394353495, 1794966454353495, 1794966574353495, 1794966394374705, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (22, 4, 3, 2, 'answered', '{"order": [4], "seed": 154553018}', 1794966394353495, 1794966454353495, 1794966574353495, 1794966394374705, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (23, 6, 3, 2, 'answered', '{"order": [6], "seed": 861690433}', 1794966394353495, 1794966454353495, 1794966574353495, 1794966394374705, 1, NULL);
INSERT INTO "request" ("id", "target", "annotator", "seat", "state", "shown", "offered_at", "lease_until", "lease_most", "ended_at", "cost", "reason") VALUES (24, 10, 3, 2, 'answered', '{"order": [10], "seed": 2016071967}', 1794966394353495, 1794966454353495, 1794966574353495, 1794966394374705, 1, NULL);
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('65308235-964e-4fdc-9f80-ca5073ee3a44', 1, 1, 1, 1, 5, '{"grade": 0}', '07a9715aeb3f5b95f10184b519ed8b95dd6026899c557788c540591185c630ad', 0.0, 1, 1, 1794966393928571, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('461c5b28-6d7c-4cb0-a65b-1408c9f3c8a6', 1, 2, 2, 1, 3, '{"grade": 2}', '7bc92d6041d7991522b6dcf4e28ee8686f8644d43734e1d9be41935c08eddd50', 0.0, 1, 1, 1794966393928571, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('6211a681-5a08-4a74-9f6e-3c13a0a17964', 1, 3, 3, 1, 7, '{"grade": 2}', '8739554a71285e04592118361a716fa6715e8949fd045271769a0bcb65eec38d', 0.0, 1, 1, 1794966393928571, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('bcbb0d2d-ba76-4bbe-afb4-c79dd298a5f7', 1, 4, 4, 1, 9, '{"grade": 0}', 'fb233d65eeed50a0bbc7e195a8cb1fa4a611c979c7266accc27b07a377812c67', 0.0, 1, 1, 1794966393928571, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('89f3ddce-9183-4fb2-af57-38ba5385f0be', 1, 5, 5, 1, 11, '{"grade": 2}', '886566ae842c3e7882ba59a37899fd72bd5937d2ae66107c9bbc47839ea55985', 0.0, 1, 1, 1794966393978679, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('4afc3630-d9a7-4eba-9013-ff6098b885c3', 1, 6, 6, 1, 8, '{"grade": 3}', '1605c04279a66535199bda73f49ad4ccd47cbd44d2c5b5d4deb4bcb1d0a24fe6', 0.0, 1, 1, 1794966393978679, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('6c6647a4-7aad-4e55-9571-74146ee0c7cd', 1, 7, 7, 1, 12, '{"grade": 3}', '557168feeab6660e1b3e1ab2e5133d68475d5f1929d563728c8231f2b9cafa3d', 0.0, 1, 1, 1794966393978679, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('9d4acb0d-bb2b-4abf-8e0b-05e6285ba8d3', 1, 8, 8, 1, 1, '{"grade": 0}', 'bb13ed6806671ab72d71de2c2e9a41927bd2fbb2236b2519894acc5db2d44661', 0.0, 1, 1, 1794966393978679, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('6ff78f24-89bd-446b-9437-16719ccc7854', 1, 9, 9, 2, 2, '{"grade": 1}', 'e6c3c65966b88ec903e9755b4d312cc05ea5e05ed8a35d767a6991b2de7d75d1', 0.0, 1, 1, 1794966394144162, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('86b6d4c9-2603-4491-820b-9682602c6654', 1, 10, 10, 2, 4, '{"grade": 3}', 'a0e74de47f5e66af3fcd52ed9de1ceaf89af1d06ff825f610cb9213f6cbefb35', 0.0, 1, 1, 1794966394144162, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('32be7c9a-025f-459a-9708-54b52e9039ab', 1, 11, 11, 2, 6, '{"grade": 1}', 'b3582bad1d8baa1bbb2360f1cfb2ac73ea6c78fbd400e0eeffece2f464502b74', 0.0, 1, 1, 1794966394144162, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('246d5c4e-aded-4622-be7d-613546fb2431', 1, 12, 12, 2, 10, '{"grade": 1}', '334053205d9ffc1d30ab6bc3614186cb0193a35b8cf1bc4f39ff7dd7c1e01905', 0.0, 1, 1, 1794966394144162, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('90406850-5b2d-4ad6-9f95-6a4dda2367da', 1, 13, 13, 2, 5, '{"grade": 0}', '8a0c342b9f269c696369f1d6868843ec1f4a4c294e3bfef26e3486f524ecff08', 0.0, 1, 1, 1794966394187280, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('7164cfa2-fc0d-4b71-be45-aee28385b612', 1, 14, 14, 2, 3, '{"grade": 2}', 'd1c67a8ba0952a2281eac0d5e8da2344e61911597c38fc942a56be6206c418e8', 0.0, 1, 1, 1794966394187280, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('aa4704f8-0346-451e-b8b5-f80982c2edbc', 1, 15, 15, 2, 7, '{"grade": 2}', '89dcbb7883251ad62c4686397229f2abe754f85410865f2877798e86746c6689', 0.0, 1, 1, 1794966394187280, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('6faad783-8033-45e6-b4cc-9e73a5a77f8e', 1, 16, 16, 2, 9, '{"grade": 0}', 'a3e279e08978748a3aba24aa0c70f31312116a60737dd5869eaaef34652a14ae', 0.0, 1, 1, 1794966394187280, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('aedac832-58b3-4c46-b7b7-b1cb62ae6a9a', 1, 17, 17, 3, 11, '{"grade": 1}', 'ec6278e6ff18be5f0d913f46b6c5aef97ef623690a0af690fcc7d14d0a86dbf9', 0.0, 1, 1, 1794966394331625, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('aed859da-e56d-4de5-b561-475ecb8065d4', 1, 18, 18, 3, 8, '{"grade": 0}', 'ec9a5415e2c98533ebe2c6666fbdff7c295b450cba48dbda424e8e264a5c252c', 0.0, 1, 1, 1794966394331625, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('5bd28672-9279-42fb-9bc0-50732de4f99c', 1, 19, 19, 3, 12, '{"grade": 0}', 'dbdd990ea7cc70146be03bc5d212ab46a69b00ddac35695f39e005f20b0c4927', 0.0, 1, 1, 1794966394331625, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('2e4d3b9a-2f22-4712-a311-e3be9b6e9d60', 1, 20, 20, 3, 1, '{"grade": 3}', '8b422cf96a1058f8ed80e5059421b3ac772aa48695f9407733ec4ad95b5699ac', 0.0, 1, 1, 1794966394331625, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('a45719b9-e3c3-4d0f-9264-80b4741d9ef8', 1, 21, 21, 3, 2, '{"grade": 2}', 'a11d678167205734bb7da514160379c22ae6c1b856319f9218adb33f0252c8f1', 0.0, 1, 1, 1794966394374705, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('445dcb1d-5c0a-44bc-93ab-6aa7359771b7', 1, 22, 22, 3, 4, '{"grade": 0}', '1a82224a9700f08cfdc6610972aef3aaf26a1a7a420c491514ec374272a6207d', 0.0, 1, 1, 1794966394374705, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('654faed8-40cd-4c11-8349-7e7152d08763', 1, 23, 23, 3, 6, '{"grade": 2}', 'd2d74f26d858982f70ec7b671665c9844c178857265201d153e390f7aefe2d4f', 0.0, 1, 1, 1794966394374705, NULL, NULL, '');
INSERT INTO "judgment" ("submission", "campaign", "seq", "request", "annotator", "target", "answer", "body_hash", "seconds", "counted", "paid", "at", "withdrawn_at", "replaces", "source") VALUES ('594b857a-6bb9-4e6b-913c-33ae9420bbdf', 1, 24, 24, 3, 10, '{"grade": 2}', '77535ab0e030498b3659dd231c1911d3d5b9f993d7d139ed528fee46a9621e8d', 0.0, 1, 1, 1794966394374705, NULL, NULL, '');
INSERT INTO "schema_version" ("version") VALUES (1);
CREATE INDEX target_open ON public.target USING btree (campaign, priority DESC, shuffle) WHERE ((taken < wanted) AND (is_check = 0));
CREATE INDEX target_checks ON public.target USING btree (campaign, shuffle) WHERE (is_check = 1);
CREATE UNIQUE INDEX request_seat ON public.request USING btree (target, seat) WHERE (state = ANY (ARRAY['offered'::text, 'answered'::text]));
CREATE UNIQUE INDEX request_once ON public.request USING btree (target, annotator) WHERE (state = ANY (ARRAY['offered'::text, 'answered'::text, 'skipped'::text]));
CREATE INDEX request_mine ON public.request USING btree (annotator) WHERE (state = 'offered'::text);
CREATE INDEX request_lease ON public.request USING btree (lease_until) WHERE (state = 'offered'::text);
CREATE INDEX request_target ON public.request USING btree (target);
CREATE UNIQUE INDEX judgment_request ON public.judgment USING btree (request) WHERE (withdrawn_at IS NULL);
CREATE INDEX judgment_target ON public.judgment USING btree (target);
CREATE INDEX judgment_annotator ON public.judgment USING btree (annotator, seq);
CREATE INDEX fit_latest ON public.fit USING btree (campaign, seq DESC);
CREATE INDEX event_at ON public.event USING btree (campaign, at);
SELECT setval(pg_get_serial_sequence('campaign', 'id'), (SELECT coalesce(max(id), 1) FROM campaign));
SELECT setval(pg_get_serial_sequence('item', 'id'), (SELECT coalesce(max(id), 1) FROM item));
SELECT setval(pg_get_serial_sequence('target', 'id'), (SELECT coalesce(max(id), 1) FROM target));
SELECT setval(pg_get_serial_sequence('annotator', 'id'), (SELECT coalesce(max(id), 1) FROM annotator));
SELECT setval(pg_get_serial_sequence('invite', 'id'), (SELECT coalesce(max(id), 1) FROM invite));
SELECT setval(pg_get_serial_sequence('fit', 'id'), (SELECT coalesce(max(id), 1) FROM fit));
SELECT setval(pg_get_serial_sequence('event', 'id'), (SELECT coalesce(max(id), 1) FROM event));
SELECT setval(pg_get_serial_sequence('request', 'id'), (SELECT coalesce(max(id), 1) FROM request));
