BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0007');
CREATE TABLE answers (
	release_number SMALLINT NOT NULL, 
	query_id BIGINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	vector_digest BLOB NOT NULL, 
	vector BLOB NOT NULL, 
	label INTEGER, 
	stable BOOLEAN NOT NULL, precision SMALLINT, bin_index SMALLINT, bin_shifted BOOLEAN, units SMALLINT, 
	CONSTRAINT answers_key PRIMARY KEY (release_number, query_id), 
	CONSTRAINT answers_have_an_entry FOREIGN KEY(release_number, sequence) REFERENCES entries (release_number, sequence), 
	CONSTRAINT answers_are_numbered_from_one CHECK (query_id >= 1)
)
 WITHOUT ROWID

;
INSERT INTO "answers" VALUES(1,1,6,X'EBBBB06BD70D82A3EDDF9E485C2AB3A6080D9CB9E8CB200371AEFA9BAD12EB99',X'92CB4034000000000000A161',1,1,NULL,NULL,NULL,NULL);
CREATE TABLE checkpoints (
	release_number SMALLINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	body TEXT NOT NULL, 
	mark VARCHAR(64) NOT NULL, 
	CONSTRAINT checkpoints_key PRIMARY KEY (release_number, sequence), 
	CONSTRAINT checkpoints_have_an_entry FOREIGN KEY(release_number, sequence) REFERENCES entries (release_number, sequence)
)
 WITHOUT ROWID

;
CREATE TABLE database_secret (
	number SMALLINT NOT NULL, 
	secret BLOB NOT NULL, 
	CONSTRAINT database_secret_key PRIMARY KEY (number), 
	CONSTRAINT database_secret_is_one CHECK (number = 1)
);
INSERT INTO "database_secret" VALUES(1,X'E6B190F6CD6FA4B87B2A657937257A5712116F79F8A07BAEEB24C25BBA8AEF81');
CREATE TABLE entries (
	release_number SMALLINT NOT NULL, 
	sequence BIGINT NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	version SMALLINT NOT NULL, 
	body TEXT NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT entries_key PRIMARY KEY (release_number, sequence), 
	CONSTRAINT entries_are_numbered_from_one CHECK (sequence >= 1)
)
 WITHOUT ROWID

;
INSERT INTO "entries" VALUES(1,1,'ReleaseOpened',1,'{"cutoff":null,"delta":"1/100","epsilon":"20","fingerprint":"070bb853d9c1d8f195e445aeff843268d3383f917c88c7a51a7ec9e98bd1891e","name":"small","parameters":{"answers.after":"\"classifier\"","answers.cutoff":"2","answers.ensemble":"5","answers.mechanism":"\"noisy-vote\"","answers.on_cutoff":"\"halt\"","answers.queries":"4","answers.unstable":"\"abstain\"","classifier.bins":"16","classifier.class":"\"trees\"","classifier.depth":"1","classifier.tests.margin":"[-25.0,0.0,25.0]","data.classes":"[\"no\",\"yes\"]","data.features":"[\"margin\",\"group\"]","data.features.group.categories":"[\"a\",\"b\"]","data.features.group.category_shares":"null","data.features.group.kind":"\"categorical\"","data.features.group.name":"\"group\"","data.features.margin.bounds":"[-50.0,50.0]","data.features.margin.kind":"\"numeric\"","data.features.margin.name":"\"margin\"","data.features.margin.threshold_shares":"null","data.features.margin.thresholds":"[-25.0,0.0,25.0]","data.label":"\"answer\"","data.missing":"[\"?\"]","data.reading":"row by row","data.rows":"60","hypotheses.bins":"16","hypotheses.class":"\"trees\"","hypotheses.depth":"1","hypotheses.tests":"{}","learner.estimator":"null","learner.params":"{}","learner.rule":"\"canonical\"","privacy.calibration":"\"profile\"","privacy.delta":"1/100","privacy.delta_shares.answers":"1","privacy.delta_shares.statistics":"0","privacy.epsilon":"20","privacy.shares.answers":"3/5","privacy.shares.classifier":"3/10","privacy.shares.relabel":"1/10","privacy.shares.statistics":"0","release.name":"\"small\""},"private_digests":{"release-secret":"d9b1ed9c32e52fcebb83d3f96dd4cfec18add7ef6fef03e13ebbe613c406c82a"},"queries":4,"release_id":"59a5a0c7c39734d9c3359438fe114555"}','ef1f9aa56d0e77d1f4cd95ac7f6480e738c7aae01bc97386985310c0103b6c3d');
INSERT INTO "entries" VALUES(1,2,'ShareCharged',1,'{"delta":"1/209715200","epsilon":"2","mechanism":"relabel"}','77f8d9bb106543ee7f8961368d782625dcbbe4be4426f876fb72b576183abd05');
INSERT INTO "entries" VALUES(1,3,'ShareCharged',1,'{"delta":"41943/4194304","epsilon":"12","mechanism":"answers"}','dfeb72c08d3d81c529a14c032ba4ff1592f377b58135f3bc0d339acdf894d030');
INSERT INTO "entries" VALUES(1,4,'ShareReserved',1,'{"delta":"1/209715200","epsilon":"6","mechanism":"classifier"}','22c233e47179e441a0e7d0213a7a62a4ffceb9f03c7e1698e156518a6278a075');
INSERT INTO "entries" VALUES(1,5,'EnsembleFitted',1,'{"private_digests":{"ensemble":"8c7d83012845d0add5d453ae12ff071ff027b034eedf93a52c019a7a4df6f54d","hypothesis":"a8d966965f2ccf4600138f14183b2c9d1bd783bed2da50d44634b86b3942e191","noisy-vote-calibration":"df29127c54f955c32653bd7e826d0af424a6c9d188a1ad38089e7b614a666bc3","permutation":"b7be92a95c0506a97c8b9973252f574909349e388c4e09f0e907182cbbfe0466"},"size":5}','deb6e4522b5db0201e44b87469ae52636eae9167bc6fde9dfb7b9e3a7b9fe936');
INSERT INTO "entries" VALUES(1,6,'AnswersReleased',1,'{"digests":["ebbbb06bd70d82a3eddf9e485c2ab3a6"],"first_query_id":1,"labels":[1],"stable":[true]}','de90a46f614ccb7d8ff3ef53444998feaa35f6657a2272b92fae20061ffbb556');
CREATE TABLE idempotency_keys (
	release_number SMALLINT NOT NULL, 
	key_digest BLOB NOT NULL, 
	vector_digest BLOB NOT NULL, mark BLOB, 
	CONSTRAINT idempotency_keys_key PRIMARY KEY (release_number, key_digest)
)
 WITHOUT ROWID

;
CREATE TABLE key_counts (
	release_number SMALLINT NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	answered BIGINT NOT NULL, 
	unstable BIGINT NOT NULL, 
	mark BLOB NOT NULL, 
	CONSTRAINT key_counts_key PRIMARY KEY (release_number, name)
)
 WITHOUT ROWID

;
CREATE TABLE private_state (
	release_number SMALLINT NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	body BLOB NOT NULL, 
	CONSTRAINT private_state_key PRIMARY KEY (release_number, name)
);
INSERT INTO "private_state" VALUES(1,'release-secret','d9b1ed9c32e52fcebb83d3f96dd4cfec18add7ef6fef03e13ebbe613c406c82a',X'EAB817087DE37B4D5920B194489C5B7F9A0B4D44E9519C08D1AAAB7ED53A5B69');
INSERT INTO "private_state" VALUES(1,'hypothesis','a8d966965f2ccf4600138f14183b2c9d1bd783bed2da50d44634b86b3942e191',X'7B22746573745F696E6469636573223A5B315D2C226C6561665F6C6162656C73223A5B302C315D7D');
INSERT INTO "private_state" VALUES(1,'permutation','b7be92a95c0506a97c8b9973252f574909349e388c4e09f0e907182cbbfe0466',X'060000003A000000300000002C0000001A00000017000000260000003200000038000000210000000B0000000C0000001500000010000000090000000000000027000000230000000F000000070000002A0000001100000036000000390000000100000025000000020000001F0000000A0000001400000005000000290000003300000018000000130000002D000000200000001C0000002B0000001E000000080000000E0000000D00000035000000280000001B00000003000000160000001900000031000000120000001D0000002E00000034000000220000002F0000000400000024000000370000003B000000');
INSERT INTO "private_state" VALUES(1,'ensemble','8c7d83012845d0add5d453ae12ff071ff027b034eedf93a52c019a7a4df6f54d',X'43505431010200010005000000010000000100010000000100010000000100010000000100010000000100');
INSERT INTO "private_state" VALUES(1,'noisy-vote-calibration','df29127c54f955c32653bd7e826d0af424a6c9d188a1ad38089e7b614a666bc3',X'7B22657073696C6F6E223A223132222C2264656C7461223A2234313934332F34313934333034222C22616E737765725F6C696D6974223A2234222C22636C6173735F636F756E74223A2232222C22616C706861223A22383336303036353932352F34323934393637323936222C2276617269616E6365223A2233313235353734383833392F3638373139343736373336227D');
CREATE TRIGGER entries_refuse_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries: rows are never changed'); END;
CREATE TRIGGER entries_refuse_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries: rows are never changed'); END;
CREATE TRIGGER answers_refuse_update BEFORE UPDATE ON answers BEGIN SELECT RAISE(ABORT, 'answers: rows are never changed'); END;
CREATE TRIGGER answers_refuse_delete BEFORE DELETE ON answers BEGIN SELECT RAISE(ABORT, 'answers: rows are never changed'); END;
CREATE TRIGGER idempotency_keys_refuse_update BEFORE UPDATE ON idempotency_keys BEGIN SELECT RAISE(ABORT, 'idempotency_keys: rows are never changed'); END;
CREATE TRIGGER idempotency_keys_refuse_delete BEFORE DELETE ON idempotency_keys BEGIN SELECT RAISE(ABORT, 'idempotency_keys: rows are never changed'); END;
CREATE TRIGGER private_state_refuse_update BEFORE UPDATE ON private_state BEGIN SELECT RAISE(ABORT, 'private_state: rows are never changed'); END;
CREATE TRIGGER private_state_refuse_delete BEFORE DELETE ON private_state BEGIN SELECT RAISE(ABORT, 'private_state: rows are never changed'); END;
CREATE TRIGGER database_secret_refuse_update BEFORE UPDATE ON database_secret BEGIN SELECT RAISE(ABORT, 'database_secret: rows are never changed'); END;
CREATE TRIGGER database_secret_refuse_delete BEFORE DELETE ON database_secret BEGIN SELECT RAISE(ABORT, 'database_secret: rows are never changed'); END;
CREATE TRIGGER entries_follow_without_gaps BEFORE INSERT ON entries WHEN NEW.sequence <> 1 + COALESCE((SELECT MAX(sequence) FROM entries WHERE release_number = NEW.release_number), 0) BEGIN SELECT RAISE(ABORT, 'entries: numbers follow without gaps'); END;
CREATE TRIGGER answers_follow_without_gaps BEFORE INSERT ON answers WHEN NEW.query_id <> 1 + COALESCE((SELECT MAX(query_id) FROM answers WHERE release_number = NEW.release_number), 0) BEGIN SELECT RAISE(ABORT, 'answers: numbers follow without gaps'); END;
CREATE TRIGGER idempotency_keys_refuse_replacement BEFORE INSERT ON idempotency_keys WHEN EXISTS (SELECT 1 FROM idempotency_keys WHERE release_number = NEW.release_number AND key_digest = NEW.key_digest) BEGIN SELECT RAISE(ABORT, 'idempotency_keys: rows are never replaced'); END;
CREATE TRIGGER private_state_refuse_replacement BEFORE INSERT ON private_state WHEN EXISTS (SELECT 1 FROM private_state WHERE release_number = NEW.release_number AND name = NEW.name) BEGIN SELECT RAISE(ABORT, 'private_state: rows are never replaced'); END;
CREATE TRIGGER database_secret_refuse_replacement BEFORE INSERT ON database_secret WHEN EXISTS (SELECT 1 FROM database_secret WHERE number = NEW.number) BEGIN SELECT RAISE(ABORT, 'database_secret: rows are never replaced'); END;
CREATE UNIQUE INDEX answers_by_vector ON answers (vector_digest, release_number);
CREATE TRIGGER checkpoints_refuse_update BEFORE UPDATE ON checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints: rows are never changed'); END;
CREATE TRIGGER checkpoints_refuse_delete BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints: rows are never changed'); END;
CREATE TRIGGER checkpoints_refuse_replacement BEFORE INSERT ON checkpoints WHEN EXISTS (SELECT 1 FROM checkpoints WHERE release_number = NEW.release_number AND sequence = NEW.sequence) BEGIN SELECT RAISE(ABORT, 'checkpoints: rows are never replaced'); END;
CREATE TRIGGER key_counts_refuse_delete BEFORE DELETE ON key_counts BEGIN SELECT RAISE(ABORT, 'key_counts: rows are never changed'); END;
CREATE TRIGGER key_counts_only_grow BEFORE UPDATE ON key_counts WHEN NEW.release_number <> OLD.release_number OR NEW.name <> OLD.name OR NEW.answered < OLD.answered OR NEW.unstable < OLD.unstable BEGIN SELECT RAISE(ABORT, 'key_counts: counts only grow'); END;
CREATE TRIGGER key_counts_refuse_replacement BEFORE INSERT ON key_counts WHEN EXISTS (SELECT 1 FROM key_counts WHERE release_number = NEW.release_number AND name = NEW.name) BEGIN SELECT RAISE(ABORT, 'key_counts: rows are never replaced'); END;
CREATE UNIQUE INDEX entries_by_number ON entries (release_number, sequence);
COMMIT;
