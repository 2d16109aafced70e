"""Every kind of bad configuration, and the line that it is refused with."""

from __future__ import annotations

CELL_IN_WORDS = (
    'cells[0]: must be "feature >= number" of a number, "feature >= date" of a date, '
    '"feature = category", or "" for a cell'
)
A_DATE = "must be a date such as 2026-12-31"
TWO_DATES = 'must be [first, last], such as ["1900-01-01", "2026-12-31"]'
BORN = '[[data.features]]\nname = "born"\nkind = "date"\nbounds = ["2000-01-01", "2000-02-01"]'
# What is written in place of what, and the line after "conclave: ".
SPOILED = [
    ('name = "adult-income"', "", "release.name: is required"),
    ("[release]\n", "[relase]\n", "release: is required; did you mean it by relase?"),
    ('[release]\nname = "adult-income"', 'release = "adult"', "release: must be a table"),
    (
        "[hypotheses]\n",
        "[server]\nprot = 1\n[hypotheses]\n",
        "server.prot: is not a known key; did you mean port?",
    ),
    (
        "[hypotheses]\n",
        "[servers]\nport = 1\n[hypotheses]\n",
        "servers: is not a known key; did you mean server?",
    ),
    (
        "[hypotheses]\n",
        "[privacy.share]\n[hypotheses]\n",
        "privacy.share: is not a known key; did you mean shares?",
    ),
    ('"adult-income"', '""', "release.name: must not be empty"),
    ('"adult-income"', "7", "release.name: must be a string"),
    ('"adult-income"', '"a/b"', "release.name: must not contain a slash"),
    ('"adult-income"', f'"{"a" * 201}"', "release.name: must have at most 200 characters"),
    ('"adult-income"', '"a\\nb"', "release.name: must be printable, without spaces around it"),
    ('source = "train.csv"', "", "data.source: is required"),
    ('"train.csv"', '""', "data.source: must not be empty"),
    ('"train.csv"', "3", "data.source: must be a string"),
    (
        '"train.csv"',
        '"postgresql+psycopg://host/people"',
        "data.query: is required: data.source is a database",
    ),
    (
        '"train.csv"',
        '"train.csv"\nquery = "select 1"',
        "data.query: is for a database; data.source is a file",
    ),
    (
        '"train.csv"',
        '"postgresql+psycopg://me:changeme@host/people"\nquery = "select 1"',
        "data.source: has a placeholder for its password",
    ),
    (
        '"train.csv"',
        '"sqlite:///people.db"\nquery = "select age"',
        "data.query: must read FROM a table or a view (every row must come from one record)",
    ),
    ('"train.csv"', '"embedded:demo"', "data.classes: and data.label must be the embedded demo's"),
    ("rows = 32561", "rows = 0", "data.rows: must be at least 1"),
    ("rows = 32561", "rows = 3.0", "data.rows: must be a whole number"),
    ("rows = 32561", "rows = true", "data.rows: must be a whole number"),
    ("rows = 32561", "persons = 9", "data.persons: is for rows whose data.person names a column"),
    (
        "rows = 32561",
        'rows = 32561\nperson = "id"',
        "data.rows: is private where data.person names persons: give data.persons, their number",
    ),
    ("rows = 32561", 'person = "id"\npersons = 0', "data.persons: must be at least 1"),
    (
        "rows = 32561",
        'person = "age"',
        "data.person: is the label or a feature too, and whom a row is about must reach no learner",
    ),
    *(
        (
            "rows = 32561",
            f"rows = 1\nseparator = {separator}",
            'data.separator: must be one character such as ",", ";", "\\t" or "|"',
        )
        for separator in ('";;"', '"\\n"', '"\\""', '"1"', '"."')
    ),
    ("rows = 32561", 'rows = 1\ndecimal = ";"', 'data.decimal: must be "." or ","'),
    (
        "rows = 32561",
        'rows = 1\ndecimal = ","',
        "data.decimal: is data.separator too: set one of them",
    ),
    *(
        (
            "rows = 32561",
            f'rows = 1\nencoding = "{name}"',
            'data.encoding: must be a text encoding such as "utf-8", "utf-16" or "cp1252"',
        )
        for name in ("base64", "rot13", "utf8x", "undefined")
    ),
    (
        "[hypotheses]\n",
        '[[data.features]]\nname = "b"\nkind = "boolean"\ntrue_share = 2\n[hypotheses]\n',
        'data.features[2] ("b").true_share: must be at most 1',
    ),
    *(
        (
            "[hypotheses]\n",
            f'[[data.features]]\nname = "born"\nkind = "date"\n{keys}\n[hypotheses]\n',
            f'data.features[2] ("born").{line}',
        )
        for keys, line in (
            ("bounds = [0, 1]", f"bounds: {A_DATE}"),
            ('bounds = ["1900-01-01"]', f"bounds: {TWO_DATES}"),
            ('bounds = ["1900-01-01T12:00", "2000-01-01"]', f"bounds: {A_DATE}"),
            ('bounds = ["2000-02-30", "2000-03-01"]', f"bounds: {A_DATE}"),
            ("bounds = [2000-01-01, 2000-01-01]", "bounds: lower must be below upper"),
            ("bounds = [2000-01-01, 2000-02-01T00:00:00]", f"bounds: {A_DATE}"),
            (
                'bounds = ["2000-01-01", "2000-02-01"]\nthresholds = ["1999-12-31"]',
                "thresholds[0]: lies outside the feature's bounds",
            ),
            (
                'bounds = ["2000-01-01", "2000-02-01"]\nthresholds = [7]',
                f"thresholds[0]: {A_DATE}",
            ),
        )
    ),
    *(
        (
            'class = "trees"',
            f'class = "trees"\n[hypotheses.tests]\nborn = {cuts}\n{BORN}',
            f"hypotheses.tests.born[0]: {line}",
        )
        for cuts, line in (
            ("[7]", "must be a date such as 2026-12-31"),
            ('["2000-01"]', A_DATE),
            ('["2001-01-01"]', "lies outside the feature's bounds"),
        )
    ),
    ('label = "income"', "", "data.label: is required"),
    (
        'label = "income"',
        'label = "age"',
        'data.features[0] ("age").name: is the label too (data.label)',
    ),
    ('["<=50K", ">50K"]', '["<=50K"]', "data.classes: must have at least 2 items"),
    ('["<=50K", ">50K"]', '"<=50K"', "data.classes: must be a list"),
    ('["<=50K", ">50K"]', "[0, 1]", "data.classes[0]: must be a string"),
    ('["<=50K", ">50K"]', '["a", ""]', "data.classes[1]: must not be empty"),
    ('["<=50K", ">50K"]', '["a", "b", "a"]', "data.classes[2]: is the same as data.classes[0]"),
    ('["<=50K", ">50K"]', '["a", "?"]', "data.classes[1]: is a token of data.missing too"),
    ('["?"]', '"?"', "data.missing: must be a list"),
    ('["?"]', '["?", 0]', "data.missing[1]: must be a string"),
    *(
        (
            'missing = ["?"]',
            f'missing = ["?", "{token}"]\n[[data.features]]\nname = "a"\nkind = "boolean"',
            'data.missing[1]: is true or false too, and data.features[0].kind is "boolean"',
        )
        for token in ("0", "1.0", "TRUE", "f")
    ),
    ('["?"]', '["?", "?"]', "data.missing[1]: is the same as data.missing[0]"),
    (
        '"numeric"',
        '"number"',
        (
            'data.features[0] ("age").kind: must be "numeric", "categorical", "boolean" or '
            '"date"; did you mean "numeric"?'
        ),
    ),
    (
        'kind = "numeric"',
        "",
        (
            'data.features[0] ("age").kind: is required: "numeric", "categorical", "boolean" '
            'or "date"'
        ),
    ),
    (
        'name = "workclass"',
        'name = "age"',
        'data.features[1] ("age").name: is the same as data.features[0].name',
    ),
    ('name = "workclass"', "", "data.features[1].name: is required"),
    (
        'kind = "numeric"',
        'kind = "numeric"\nunit = "y"',
        'data.features[0] ("age").unit: is not a known key',
    ),
    ("bounds = [17, 90]", "", 'data.features[0] ("age").bounds: is required'),
    ("[17, 90]", "[17]", 'data.features[0] ("age").bounds: must be [lower, upper]'),
    ("[17, 90]", '"17-90"', 'data.features[0] ("age").bounds: must be [lower, upper]'),
    ("[17, 90]", '[17, "90"]', 'data.features[0] ("age").bounds: must be a number'),
    ("[17, 90]", "[true, 90]", 'data.features[0] ("age").bounds: must be a number'),
    ("[17, 90]", "[17, inf]", 'data.features[0] ("age").bounds: must be a finite number'),
    ("[17, 90]", "[nan, 90]", 'data.features[0] ("age").bounds: must be a finite number'),
    ("[17, 90]", f"[17, 1{'0' * 400}]", 'data.features[0] ("age").bounds: must be a finite number'),
    ("[17, 90]", "[-1e308, 1e308]", 'data.features[0] ("age").bounds: must span a finite range'),
    ("[17, 90]", "[90, 17]", 'data.features[0] ("age").bounds: lower must be below upper'),
    ("[17, 90]", "[90, 90]", 'data.features[0] ("age").bounds: lower must be below upper'),
    ("[25, 35, 50]", "[]", 'data.features[0] ("age").thresholds: must have at least one item'),
    (
        "[25, 35, 50]",
        "[25, 35, 35]",
        'data.features[0] ("age").thresholds[2]: must be above the cut before it',
    ),
    (
        "[25, 35, 50]",
        "[25, 35, 91]",
        'data.features[0] ("age").thresholds[2]: lies outside the feature\'s bounds',
    ),
    (
        "[25, 35, 50]",
        "[25, 35, nan]",
        'data.features[0] ("age").thresholds[2]: must be a finite number',
    ),
    (
        "thresholds = [25, 35, 50]\n",
        "",
        'data.features[0] ("age").threshold_shares: needs thresholds beside it',
    ),
    (
        "[0.80, 0.58, 0.20]",
        "[0.80, 0.58]",
        (
            'data.features[0] ("age").threshold_shares: must have 3 items, one for each cut of '
            "thresholds"
        ),
    ),
    (
        "[0.80, 0.58, 0.20]",
        "[1.5, 0.5, 0.2]",
        'data.features[0] ("age").threshold_shares[0]: must be at most 1',
    ),
    (
        "[0.80, 0.58, 0.20]",
        "[0.5, 0.6, 0.2]",
        'data.features[0] ("age").threshold_shares: must not increase from one cut to the next',
    ),
    (
        '["Private", "State-gov"]',
        "[]",
        'data.features[1] ("workclass").categories: must have at least one item',
    ),
    (
        '["Private", "State-gov"]',
        '["a", "a"]',
        (
            'data.features[1] ("workclass").categories[1]: is the same as '
            "data.features[1].categories[0]"
        ),
    ),
    (
        '["Private", "State-gov"]',
        '["a", "?"]',
        'data.features[1] ("workclass").categories[1]: is a token of data.missing too',
    ),
    (
        "[0.70, 0.04]",
        "[0.70]",
        'data.features[1] ("workclass").category_shares: must have 2 items, one for each category',
    ),
    (
        "[0.70, 0.04]",
        "[0.7, -0.1]",
        'data.features[1] ("workclass").category_shares[1]: must be at least 0',
    ),
    (
        "[0.70, 0.04]",
        "[0.7, 0.4]",
        'data.features[1] ("workclass").category_shares: add up to more than 1',
    ),
    ('class = "trees"', "", "hypotheses.class: is required"),
    (
        '"trees"',
        '"forest"',
        'hypotheses.class: must be a class of docs/settings.md or "package.module:Class"',
    ),
    (
        '"trees"',
        '"thresholds"\ntests = { age = [] }',
        "hypotheses.class: thresholds needs a test of a number",
    ),
    (
        '"trees"',
        '"intervals"\ntests = { age = [] }',
        "hypotheses.class: intervals needs a test of a number",
    ),
    ('"trees"', '"rectangles"', "hypotheses.class: rectangles needs tests of two numbers"),
    ('"trees"', '"cells"', 'hypotheses.cells: is required with class = "cells"'),
    (
        '"trees"',
        '"trees"\ncells = [""]',
        'hypotheses.cells: are for class = "cells", and it is "trees"',
    ),
    (
        '"trees"',
        '"cells"\ncells = ["age >= 30", ""]',
        "hypotheses.cells: ends before every test has both of its sides",
    ),
    (
        '"trees"',
        '"cells"\ncells = ["weight >= 30", "", ""]',
        f"hypotheses.{CELL_IN_WORDS}",
    ),
    (
        '"trees"',
        '"cells"\ngrid = "private"\ncells = [""]',
        'hypotheses.grid: must be "public" with class = "cells", whose cells are',
    ),
    ('"trees"', '"finite"', 'hypotheses.predictors: is required with class = "finite"'),
    (
        '"trees"',
        '"finite"\npredictors = ["a:b", "a:c", "a:b"]',
        "hypotheses.predictors[2]: is the same as hypotheses.predictors[0]",
    ),
    (
        '"trees"',
        '"finite"\npredictors = ["a:b", "a.b"]',
        'hypotheses.predictors[1]: must be an import path such as "package.module:function"',
    ),
    ('"trees"', '"finite"\npredictors = "a:b"', "hypotheses.predictors: must be a list"),
]

# What is added below [hypotheses], and the line after "conclave: ".
ADDED = [
    ('tests = { "a\\nb" = [1] }', r"'hypotheses.tests.a\nb': names no feature of data.features"),
    ("depht = 2", "hypotheses.depht: is not a known key; did you mean depth?"),
    ("depth = 0", "hypotheses.depth: must be at least 1"),
    (
        'predictors = ["a:b"]',
        'hypotheses.predictors: are for class = "finite", and it is "trees"',
    ),
    (
        '[classifier]\npredictors = ["a:b"]',
        'classifier.predictors: are for class = "finite", and it is "trees"',
    ),
    ('[classifier]\nclass = "finite"', 'classifier.predictors: is required with class = "finite"'),
    ("bins = 1", "hypotheses.bins: must be at least 2"),
    ("tests = { height = [1] }", "hypotheses.tests.height: names no feature of data.features"),
    ('tests = { age = ["x"] }', "hypotheses.tests.age[0]: must be a number"),
    ("tests = { age = 30 }", "hypotheses.tests.age: must be a list"),
    ("tests = { age = [inf] }", "hypotheses.tests.age[0]: must be a finite number"),
    ("tests = { age = [5] }", "hypotheses.tests.age[0]: lies outside the feature's bounds"),
    ("tests = { age = [30, 20] }", "hypotheses.tests.age[1]: must be above the cut before it"),
    ("tests = { workclass = [1] }", "hypotheses.tests.workclass[0]: must be a category"),
    (
        'tests = { workclass = ["Private", "Never"] }',
        "hypotheses.tests.workclass[1]: is no category of the feature",
    ),
    (
        'tests = { workclass = ["Private", "Private"] }',
        "hypotheses.tests.workclass[1]: is the same as hypotheses.tests.workclass[0]",
    ),
    ("tests = { age = [], workclass = [] }", "hypotheses.tests: leaves no test at all"),
    (
        '[classifier]\ntests = { sex = ["F"] }',
        "classifier.tests.sex: names no feature of data.features",
    ),
    (
        "[classifier]\ntests = { age = [], workclass = [] }",
        "classifier.tests: leaves no test at all",
    ),
    ("[classifier]\ndepth = 99", "classifier.depth: must be at most 16"),
    ('[learner]\nrule = "greedy"', 'learner.rule: must be "canonical" or "halving"'),
    (
        '[learner]\nrule = "canonical"\nestimator = "sklearn.tree.DecisionTreeClassifier"',
        "learner.estimator: give a rule or an estimator, not both",
    ),
    (
        '[learner]\nestimator = "DecisionTreeClassifier"',
        'learner.estimator: must be an import path such as "sklearn.tree.DecisionTreeClassifier"',
    ),
    (
        "[learner]\nparams = { max_depth = 3 }",
        "learner.params: are for an estimator; a rule takes none",
    ),
    (
        '[learner]\nestimator = "a.B"\nparams = { day = 2020-01-01 }',
        "learner.params.day: must hold strings, numbers, booleans, lists and tables only",
    ),
    ("[privacy]\nepsilon = 0", "privacy.epsilon: must be above 0"),
    ("[privacy]\nepsilon = -1.0", "privacy.epsilon: must be above 0"),
    ("[privacy]\nepsilon = inf", "privacy.epsilon: must be a finite number"),
    ('[privacy]\nepsilon = "1"', "privacy.epsilon: must be a number"),
    ("[privacy]\ndelta = 0", "privacy.delta: must be above 0"),
    ("[privacy]\ndelta = 1.0", "privacy.delta: must be below 1"),
    (
        "[privacy]\ndelta = 1e-999999999",
        "privacy.delta: must be a decimal of ordinary size, such as 0.1 or 1e-6",
    ),
    (
        '[privacy]\ncalibration = "paper"\ndelta = 0.037',
        "privacy.delta: must be at most 0.036 with the paper calibration",
    ),
    ("[privacy]\nsampling = 0", "privacy.sampling: must be above 0"),
    ("[privacy]\nsampling = 1.01", "privacy.sampling: must be at most 1"),
    (
        '[privacy]\ncalibration = "paper"\nsampling = 0.5',
        "privacy.sampling: is for the other calibrations: paper takes a sample of its own",
    ),
    (
        '[privacy]\ncalibration = "paper"\n[answers]\nmechanism = "noisy-vote"',
        'answers.mechanism: must be "stability" with the paper calibration, which is one',
    ),
    (
        '[privacy]\ncalibration = "gauss"',
        'privacy.calibration: must be "profile", "svt", "paper" or "certified"',
    ),
    ("[privacy.shares]\nrelabel = 0.2", "privacy.shares: add up to more than 1"),
    (
        "[privacy.shares]\nrelabel = 0.1000000000000000000000000000000001",
        "privacy.shares: add up to more than 1",
    ),
    ("[privacy.shares]\nanswers = -0.1", "privacy.shares.answers: must be at least 0"),
    (
        "[privacy.shares]\nrelabel = 0\nanswers = 0\nclassifier = 0",
        "privacy.shares: are all 0; nothing could be released",
    ),
    (
        "[privacy.shares]\nanswers = 0\nclassifier = 0",
        "privacy.shares.classifier: must be above 0 while answers is 0: nothing would serve",
    ),
    (
        "[privacy.delta_shares]\nanswers = 0.9\nstatistics = 0.2",
        "privacy.delta_shares: add up to more than 1",
    ),
    (
        "[privacy.delta_shares]\nanswers = 0",
        "privacy.delta_shares.answers: must be above 0 while answers have a share of epsilon",
    ),
    (
        "[privacy.shares]\nclassifier = 0",
        'answers.after: "classifier" needs privacy.shares.classifier above 0',
    ),
    (
        '[answers]\nafter = "halt"\non_cutoff = "classifier"\n[privacy.shares]\nclassifier = 0',
        'answers.on_cutoff: "classifier" needs privacy.shares.classifier above 0',
    ),
    ("[answers]\nqueries = 0", "answers.queries: must be at least 1"),
    ("[answers]\nqueries = 1e3", "answers.queries: must be a whole number"),
    ("[answers]\ncutoff = 0", "answers.cutoff: must be at least 1"),
    (
        '[answers]\nensemble = "all"',
        'answers.ensemble: must be "auto" or a whole number of at least 1',
    ),
    (
        "[answers]\nensemble = true",
        'answers.ensemble: must be "auto" or a whole number of at least 1',
    ),
    ("[answers]\nensemble = 32562", "answers.ensemble: is above data.rows: a learner needs a row"),
    ('[answers]\nmechanism = "vote"', 'answers.mechanism: must be "stability" or "noisy-vote"'),
    ('[answers]\nunstable = "guess"', 'answers.unstable: must be "abstain" or "coin"'),
    ('[answers]\nafter = "stop"', 'answers.after: must be "classifier", "halt" or "student"'),
    ("[answers]\nalpha = 1", "answers.alpha: must be below 1"),
    ("[answers]\nbeta = 0", "answers.beta: must be above 0"),
    (
        "[answers]\nreply_padding_milliseconds = -1",
        "answers.reply_padding_milliseconds: must be at least 0",
    ),
    (
        '[ledger]\nurl = "mysql://host/ledger"',
        "ledger.url: must start with sqlite:/// or postgresql+psycopg://",
    ),
    (
        '[ledger]\nurl = "sqlite://"',
        "ledger.url: must name a file: a ledger in memory would be lost",
    ),
    (
        '[ledger]\nurl = "sqlite:///:memory:"',
        "ledger.url: must name a file: a ledger in memory would be lost",
    ),
    (
        '[ledger]\nurl = "postgresql+psycopg://me:<password>@host/ledger"',
        "ledger.url: has a placeholder for its password",
    ),
    ("[server]\nport = 70000", "server.port: must be at most 65535"),
    ('[server]\nport = "8000"', "server.port: must be a whole number"),
    ('[server]\nhost = ""', "server.host: must not be empty"),
    ('[server]\nkeys_file = ""', "server.keys_file: must not be empty"),
    ("[server]\nkeys_file = 3", "server.keys_file: must be a string"),
    ('[ledger]\nhead_file = ""', "ledger.head_file: must not be empty"),
    ("[ledger]\nhead_file = true", "ledger.head_file: must be a string"),
    ("[ledger]\nhead_file = 0", "ledger.head_file: must be a string"),
    ("[server]\nrequest_bytes_max = 1", "server.request_bytes_max: must be at least 1024"),
]

# What the environment says, and the line after "conclave: ".
SPOILED_BY_ENVIRONMENT = [
    ({"CONCLAVE_PRIVACY__EPSILON": "one"}, "privacy.epsilon: must be a number"),
    ({"CONCLAVE_PRIVACY__EPSILON": "NaN"}, "privacy.epsilon: must be a finite number"),
    ({"CONCLAVE_PRIVACY__SHARES__RELABEL": "0.2"}, "privacy.shares: add up to more than 1"),
    ({"CONCLAVE_SERVER__PROT": "1"}, "server.prot: is not a known key; did you mean port?"),
    ({"CONCLAVE_SERVER__KEYS_FILE": ""}, "server.keys_file: must not be empty"),
    ({"CONCLAVE_SERVER__PORT": "8000.0"}, "server.port: must be a whole number"),
    ({"CONCLAVE_DATA__": "1"}, "data.: is not a known key"),
    ({"CONCLAVE_DATA__CLASSES": "yes,no"}, "data.classes: must be a list"),
    (
        {"CONCLAVE_DATA__FEATURES__0__NAME": "a"},
        "data.features: has no key 0.name; give the whole of it as JSON",
    ),
    (
        {"CONCLAVE_PRIVACY_SHARES__RELABEL": "0"},
        "CONCLAVE_PRIVACY_SHARES__RELABEL: names no section; did you mean CONCLAVE_PRIVACY__...?",
    ),
    (
        {"CONCLAVE_PRIVCY__EPSILON": "0.1"},
        "CONCLAVE_PRIVCY__EPSILON: names no section; did you mean CONCLAVE_PRIVACY__...?",
    ),
]
