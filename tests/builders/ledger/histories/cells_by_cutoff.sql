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
INSERT INTO "answers" VALUES(1,1,6,X'EFF4E4737F57B8F0E7EED07BC92B75E42590C125C21946238E45331C29A29349',X'00000003',1,1,NULL,NULL,NULL,NULL);
INSERT INTO "answers" VALUES(1,2,6,X'05846E5AF7A12705C80D0D2CDD8BAE7B49C2D0D7B65734AC5741693CFD0CBC11',X'00000001',NULL,0,NULL,NULL,NULL,NULL);
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
INSERT INTO "entries" VALUES(1,1,'ReleaseOpened',1,'{"cutoff":2,"delta":"1/100","epsilon":"20","fingerprint":"070bb853d9c1d8f195e445aeff843268d3383f917c88c7a51a7ec9e98bd1891e","name":"small","parameters":{"answers.after":"\"classifier\"","answers.cutoff":"2","answers.ensemble":"5","answers.mechanism":"\"stability\"","answers.on_cutoff":"\"halt\"","answers.queries":"9","answers.replayed_by":"\"cell\"","answers.unstable":"\"abstain\"","classifier.bins":"16","classifier.cells":"[\"margin >= 0\",\"margin >= -25\",\"\",\"\",\"group = a\",\"\",\"\"]","classifier.class":"\"cells\"","classifier.depth":"1","classifier.tests.margin":"[-25.0,0.0,25.0]","data.classes":"[\"no\",\"yes\"]","data.features":"[\"margin\",\"group\"]","data.features.group.categories":"[\"a\",\"b\"]","data.features.group.category_shares":"null","data.features.group.kind":"\"categorical\"","data.features.group.name":"\"group\"","data.features.margin.bounds":"[-50.0,50.0]","data.features.margin.kind":"\"numeric\"","data.features.margin.name":"\"margin\"","data.features.margin.threshold_shares":"null","data.features.margin.thresholds":"[-25.0,0.0,25.0]","data.label":"\"answer\"","data.missing":"[\"?\"]","data.reading":"row by row","data.rows":"60","hypotheses.bins":"16","hypotheses.cells":"[\"margin >= 0\",\"margin >= -25\",\"\",\"\",\"group = a\",\"\",\"\"]","hypotheses.class":"\"cells\"","hypotheses.depth":"1","hypotheses.tests":"{}","learner.estimator":"null","learner.params":"{}","learner.rule":"\"canonical\"","opening.even_if_hopeless":"true","privacy.calibration":"\"profile\"","privacy.delta":"1/100","privacy.delta_shares.answers":"1","privacy.delta_shares.statistics":"0","privacy.epsilon":"20","privacy.shares.answers":"3/5","privacy.shares.classifier":"3/10","privacy.shares.relabel":"1/10","privacy.shares.statistics":"0","release.name":"\"small\""},"private_digests":{"release-secret":"d9b1ed9c32e52fcebb83d3f96dd4cfec18add7ef6fef03e13ebbe613c406c82a"},"queries":9,"release_id":"59a5a0c7c39734d9c3359438fe114555"}','1705c04cb03350c363f0674a08431b9ec1d0b29d3f35ac364daeac08404325df');
INSERT INTO "entries" VALUES(1,2,'ShareCharged',1,'{"delta":"1/209715200","epsilon":"2","mechanism":"relabel"}','051f86e0ccfea7238e9f3eb0f780efca6ac34327cb7b8083e2b57154f1ce3b33');
INSERT INTO "entries" VALUES(1,3,'ShareCharged',1,'{"delta":"41943/4194304","epsilon":"12","mechanism":"answers"}','30ca43c312bf707bb59a2cf43a5c413e2158d251f653a2f78053c37207807011');
INSERT INTO "entries" VALUES(1,4,'ShareReserved',1,'{"delta":"1/209715200","epsilon":"6","mechanism":"classifier"}','d8209b3833f1d899504d16af5333826cc8d15b43834a58c87b2abfb17df2bfc8');
INSERT INTO "entries" VALUES(1,5,'EnsembleFitted',1,'{"private_digests":{"ensemble":"b9868dcbfdc724b9429edd8e42ffe547c1daa3bc7cc8c06c2db3230c4918ccf3","hypothesis":"1895e10f02e9b5a0d83545c75f37e4eceed574b7d9cd5342f59f981ed12e1d6f","permutation":"b7be92a95c0506a97c8b9973252f574909349e388c4e09f0e907182cbbfe0466","profile-table":"9dd855aafdc876d849a916e0ace88672db80c8d2f0dd124a80270941d9d645c2"},"size":5}','da4f5dbc75d69c7830e039a7d9ac3713c750fbd48f047787ccdfc4a10ffc512a');
INSERT INTO "entries" VALUES(1,6,'AnswersReleased',1,'{"digests":["eff4e4737f57b8f0e7eed07bc92b75e4","05846e5af7a12705c80d0d2cdd8bae7b"],"first_query_id":1,"labels":[1,null],"stable":[true,false]}','a004f084acd95aa37d55d8b83636eb1863d2caa64267f182be499fc935afe3c7');
INSERT INTO "entries" VALUES(1,7,'VectorsAsked',1,'{"digests":["8f914e9276eee44047bd6b9adc2c0c7e","1746d9c84c4da48913d3c4d3757fc048","ebbbb06bd70d82a3eddf9e485c2ab3a6"],"first_number":1,"private_digests":{"asked-vectors-1":"a0becb6138ac63365e84782845b6c93940d4979fbf8920e4bdff549355960f74"},"query_ids":[1,2,1]}','dd389adda54596cfd6daaa469ab0c3a6f6c1d5a7d23354a9d538f997b36af34e');
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
INSERT INTO "private_state" VALUES(1,'hypothesis','1895e10f02e9b5a0d83545c75f37e4eceed574b7d9cd5342f59f981ed12e1d6f',X'7B2263656C6C5F6C6162656C73223A5B302C302C312C315D7D');
INSERT INTO "private_state" VALUES(1,'permutation','b7be92a95c0506a97c8b9973252f574909349e388c4e09f0e907182cbbfe0466',X'060000003A000000300000002C0000001A00000017000000260000003200000038000000210000000B0000000C0000001500000010000000090000000000000027000000230000000F000000070000002A0000001100000036000000390000000100000025000000020000001F0000000A0000001400000005000000290000003300000018000000130000002D000000200000001C0000002B0000001E000000080000000E0000000D00000035000000280000001B00000003000000160000001900000031000000120000001D0000002E00000034000000220000002F0000000400000024000000370000003B000000');
INSERT INTO "private_state" VALUES(1,'ensemble','b9868dcbfdc724b9429edd8e42ffe547c1daa3bc7cc8c06c2db3230c4918ccf3',X'434E434C43454C310400000002000000050000000000000005000000000000000000000000000000050000000000000000000000000000000000000000000000050000000000000000000000000000000500000000000000');
INSERT INTO "private_state" VALUES(1,'profile-table','9dd855aafdc876d849a916e0ace88672db80c8d2f0dd124a80270941d9d645c2',X'7B22657073696C6F6E223A223132222C2264656C7461223A2234313934332F34313934333034222C226375746F6666223A2232222C22616C706861223A22333037343736343337312F32313437343833363438222C226C6E5F726174696F223A223337303432333639383933332F353439373535383133383838222C2264656C74615F72656C65617365223A2234313934332F3431393433303430222C2264656C74615F737674223A223337373438372F3431393433303430222C227468726573686F6C6473223A5B223138343337353138343033343736353339343130222C223137323338393939383934343137353637373035222C223132303330373036323739353034323239373935222C2236323837343630383033383837323438333130222C2232383035393935353134353934323135303433222C2231313637313033373932313734323536323631222C22343731343633333737353635313733313939222C22313838323232333439323437393539373534222C223734373931373630353339303134313834222C223239363633373235363038353430353435222C223131373536343438393939353731383030222C2234363537393937333036333133383234222C2231383435333230353833303032363438222C22373331303131383538383834363731222C22323839353830333535373738313138222C22313134373132343730383437393737222C223435343431333138393334323732222C223138303030373535333636363231222C2237313330363639393638303636222C2232383234363833393730383236222C2231313138393436363037383832222C22343433323530313038343235222C22313735353835333732303438222C223639353534393133303330222C223237353532383938343130222C223130393134353733343936222C2234333233363037333638222C2231373132373137343637222C22363738343631343936222C22323638373630303333222C22313036343634333430222C223432313733383839222C223136373036343130225D7D');
INSERT INTO "private_state" VALUES(1,'asked-vectors-1','a0becb6138ac63365e84782845b6c93940d4979fbf8920e4bdff549355960f74',X'939201C40C92CB4024000000000000A1619202C40C92CBC024000000000000A1619201C40C92CB4034000000000000A161');
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
