"""A query that is not row-wise by its text is refused in one line."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from app.data.sources.sql_query_check import CASTS, EXTRACT, FUNCTIONS, check_row_wise
from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROW_WISE = [
    "select * from people",
    "SELECT age, hours FROM people;",
    'select "count" as n, `group` from "my schema"."the people" p where age > 17 order by 1',
    "select extract(year from born) as year, substring(name from 1 for 3) s from people",
    "select cast(age as real) as age, coalesce(work, '?') work from people where sex in ('F', 'M')",
    "select 'group by, join; union' as work, age from people as p",
    "select case when age >= 18 then 'adult' else 'it''s a child' end c, x from a.b.people",
    "select age from people where (a or (b and not c)) and d between 1 and 2",
    'select age::double precision as age, -x + .5e-3 as "capital-gain" from people',
    "select case (a) when 1 then null end c, *, left(work, 2) w from people",
    "select trim(both '?' from work) as work, trim(leading from x) as x from people",
    "select cast(x as numeric(10, 2)) as x, cast(y as varchar(3)) as y from people",
    "select age from people where age is not null and work not like 'a%' escape '!'",
    "select age from people where age not in (-1, 2.5, 'x', null) order by age desc nulls last, x",
    "select 'a:b %s %(name)s ? :z @x' as other, age from people where flag is true",
]

# The query, and what is said of it.
REFUSED = [
    # Several records at once.
    ("select count(*) from people", "count() is not row-wise"),
    ("select SUM (age) from people", "sum() is not row-wise"),
    ('select "avg"(age) from people', '"avg"() is not row-wise'),
    ('select "lower"(age) from people', '"lower"() is not row-wise'),
    ("select schema.string_agg(x, y) from people", "SCHEMA and a dot before a column"),
    ("select people.count from people", "PEOPLE and a dot before a column"),
    ("select (people).count from people", ". is not understood after )"),
    ("select max(age, 1) from people", "max() is not row-wise"),
    ("select age filter (where a) from people", "FILTER is not row-wise"),
    ("select mode() within group (order by age) from people", "mode() is not row-wise"),
    ("select rank() over (order by age) from people", "rank() is not row-wise"),
    ("select lower(work) over (order by age) from people", "OVER is not row-wise"),
    ("select age from people window w as ()", "WINDOW is not row-wise"),
    ("select distinct age from people", "DISTINCT is not row-wise"),
    ("select distinct -age as age from people", "DISTINCT is not row-wise"),
    ("select distinct(age) as age from people", "DISTINCT is not row-wise"),
    ("select distinctrow age from people", "DISTINCTROW is not row-wise"),
    ("select coalesce(distinct age) from people", "DISTINCT is not row-wise"),
    ("select age from people group\nby age", "GROUP BY is not row-wise"),
    ("select age from people having age > 1", "HAVING is not row-wise"),
    ("select age from people final", "FINAL is not row-wise"),
    # Several rows of one record.
    ("select unnest(ages) as age from people", "unnest() is not row-wise"),
    ("select skeys(work) as work from people", "skeys() is not row-wise"),
    (
        "select jsonb_path_query(work, '$[*]') as w from people",
        "jsonb_path_query() is not row-wise",
    ),
    ("select regexp_split_to_table(work, ',') w from people", "regexp_split_to_table() is not"),
    # Other tables.
    ("select age from people join pets on a = b", "JOIN is not row-wise"),
    ("select age from people natural join pets", "NATURAL is not row-wise"),
    ("select age from people p, pets", "reads from more than one table"),
    ("select age from people straight_join pets", "STRAIGHT_JOIN is not row-wise"),
    ("select age from people cross apply pets", "CROSS is not row-wise"),
    ("select age from people, lateral f(age)", "reads from more than one table"),
    ("select age from people union all select age from people", "UNION is not row-wise"),
    ("select age from people union all table people", "UNION is not row-wise"),
    ("select age from people except select age from others", "EXCEPT is not row-wise"),
    ("select age from (select age from people) p", "( is not understood after FROM"),
    ("select age from people where age > (select 1 from x)", "SELECT is not row-wise"),
    ("select age from people where age > (table t)", "TABLE is not row-wise"),
    ("select age from people where age in (table t)", "TABLE is not row-wise"),
    ("select age from people where age in (values (1))", "VALUES is not row-wise"),
    ("select age from people where age in t", "T is not understood after IN"),
    ("select age from people where age in (t)", "T is not understood after ("),
    ("select age from people where age in main.t", "MAIN is not understood after IN"),
    ("select age from people where age = any (table t)", "ANY is not row-wise"),
    ("select age from people where exists (select 1 from t)", "EXISTS is not row-wise"),
    ("select query_to_xml('select 1', true, true, '') as x from people", "query_to_xml() is not"),
    ("select age from range(10)", "must read FROM one table or view"),
    ("with p as (select 1) select age from p", "must begin with SELECT"),
    ("(select age from people)", "must begin with SELECT"),
    ("values (1)", "must begin with SELECT"),
    ("table people", "must begin with SELECT"),
    # Some of the records, by how many there are.
    ("select age from people limit 10", "LIMIT is not row-wise"),
    ("select age from people order by age offset 1", "OFFSET is not row-wise"),
    ("select top 10 age from people", "TOP is not row-wise"),
    ("select first 10 age from people", "FIRST is not row-wise"),
    ("select first (10) age from people", "FIRST is not row-wise"),
    ("select skip 5 age from people", "SKIP is not row-wise"),
    ("select age from people rows 1 to 5", "ROWS is not row-wise"),
    ("select age from people where age > 1 rows 5", "ROWS is not row-wise"),
    ("select age from people fetch first 10 rows only", "FETCH is not row-wise"),
    ("select age from people tablesample system (10)", "TABLESAMPLE is not row-wise"),
    ("select age from people p repeatable (1)", "REPEATABLE is not understood after P"),
    # What is of no row: places, states, clocks and chance.
    ("select age from people where rownum < 10", "ROWNUM is the place of a row"),
    ("select rowid as age from people", "ROWID is the place of a row"),
    ('select "_rowid_" as age from people', '"_rowid_" is the place of a row'),
    ("select ctid as age from people", "CTID is the place of a row"),
    ("select @s := @s + age as age from people", "the sign '@' is not understood"),
    ("select @`s` as age from people", "the sign '@' is not understood"),
    ("select :s as age from people", "the sign ':' is not understood"),
    ("select nextval('s') as age from people", "nextval() is not row-wise"),
    ("select next value for s as age from people", "NEXT is not row-wise"),
    ("select s.nextval as age from people", "S and a dot before a column"),
    ("select random() as age from people", "random() is not row-wise"),
    ("select age + dbms_random.value as age from people", "DBMS_RANDOM and a dot before a column"),
    ("select now() as age from people", "now() is not row-wise"),
    ("select current_timestamp as age from people", "CURRENT_TIMESTAMP is not row-wise"),
    ("select pg_sleep(1) as age from people", "pg_sleep() is not row-wise"),
    ("select current_setting('x') as age from people", "current_setting() is not row-wise"),
    ("select changes() as age from people", "changes() is not row-wise"),
    ("select my_function(age) as age from people", "my_function() is not row-wise"),
    ("select cast('people' as regclass) as age from people", "REGCLASS is not understood after AS"),
    ("select 'people'::regclass as age from people", "REGCLASS is not understood after ::"),
    # Other statements, and texts that databases read differently.
    ("delete from people", "must begin with SELECT"),
    ("", "must begin with SELECT"),
    ("select", "ends too early"),
    ("select age into others from people", "INTO is not row-wise"),
    ("select age from people for update", "FOR is not row-wise"),
    ("select age from people where a for update", "FOR is not row-wise"),
    ("select 1", "must read FROM a table or a view"),
    ("select age from people; select 1", "must be one statement"),
    ("select age from people -- all of them", "a comment (--)"),
    ("select /*! distinct */ age from people", "a comment (/*)"),
    ("select age from people # all of them", "the sign #"),
    (r"select '\'', count(*) from people", "a backslash"),
    ("select $$ ' $$, age from people", "a text between $$"),
    ("select $a$ ' $a$, age from people", "the sign '$' is not understood"),
    ("select e'a' as age from people", "'a' is not understood after E"),
    ("select u&'a' as age from people", "the sign '&' is not understood"),
    ("select 'a' 'b' as age from people", "'b' is not understood after 'a'"),
    ("select [count] from people", "the sign '[' is not understood"),
    ("select 1age from people", "the sign '1' is not understood"),
    ("select \u00e4 from people", "the sign '\\xe4' is not understood"),
    ("select age\u00a0from people", "the sign '\\xa0' is not understood"),
    ('select `a"` from people', "a name that cannot be one"),
    ("select 'age from people", "a quote that does not end"),
    ("select (age from people", "FROM is not row-wise"),
    ("select age) from people", ") is not understood after AGE"),
    ("select age, from people", "FROM is not row-wise"),
    ("select age years from people", "YEARS is not understood after AGE"),
    ("select (age from people".replace("(", "(" * 50), "is nested more than 40 times"),
]
# Words of SQLite and of PostgreSQL that combine, cut, repeat, rank or number rows, and what
# they may stand before.
_FRAGMENTS = """
    distinct all limit offset union intersect except join cross natural group by having over
    window filter order in exists not null is select from table values with recursive lateral
    tablesample fetch first rows only for collate glob match returning isnull rowid oid _rowid_
    ctid xmin people people.count p . count count(*) max(age) min(age,1) sum(age) (age)
    (table~t) (select~max(age)~from~people) random() row_number() over~(order~by~age) total(age)
    group_concat(work) json_each(work) changes() lag(age) nextval('s') generate_series(1,2) t
    pets ,pets * - + , ( ) 1 'a' "age" "count"(age) || case when then else end as x abs(age)
    lower(work) like between and or union~all~select~1,2
"""
FRAGMENTS = _FRAGMENTS.split()
CREATE = """
    create table people (age int, work text);
    create table t (x int);
    insert into t values (1), (2);
"""
RECORDS = [(1, "ab"), (1, "b"), (2, "a"), (30, None), (5, "c")]
QUERIES = [
    "select age , work from people p where age > 1 order by age desc",
    "select - age * 2 as a , coalesce ( work , '?' ) w from people where age in ( 1 , 2 )",
    "select case when age >= 2 then work else 'x' end c , * from people order by 1 nulls last",
]


@pytest.mark.parametrize("query", ROW_WISE)
def test_a_row_wise_query_is_accepted(query: str) -> None:
    """One SELECT of one table or view, with conditions and an order, is row-wise."""
    check_row_wise(query)


@pytest.mark.parametrize(("query", "problem"), REFUSED)
def test_what_is_not_row_wise_is_refused(query: str, problem: str) -> None:
    """The line names the setting and what is in the query."""
    with pytest.raises(ConfigurationError) as refused:
        check_row_wise(query)
    assert str(refused.value).startswith("data.query: ")
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("query", QUERIES)
def test_an_edited_query_is_row_wise_or_refused(query: str) -> None:
    """What is let through gives of all records what it gives of each alone, in SQLite."""
    whole, *alone = [database(records) for records in (RECORDS, *([each] for each in RECORDS))]
    let_through = 0
    for edited in edits(query.split()):
        try:
            check_row_wise(edited)
            together = Counter(whole.execute(edited))
        except (ConfigurationError, sqlite3.Error):
            continue
        one_by_one = [row for connection in alone for row in connection.execute(edited)]
        assert together == Counter(one_by_one), edited
        let_through += 1
    assert let_through > 50


def edits(words: list[str]) -> Iterator[str]:
    """Yield a query with each fragment before each word, and in its place."""
    for place in range(1, len(words) + 1):
        for fragment in FRAGMENTS:
            for behind in (words[place:], words[place + 1 :]):
                yield " ".join([*words[:place], fragment.replace("~", " "), *behind])


def database(records: list[tuple[int, str | None]]) -> sqlite3.Connection:
    """Return a database with some records, and another table."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(CREATE)
    connection.executemany("insert into people values (?, ?)", records)
    return connection


def test_the_page_lists_every_function(repository: Path) -> None:
    """docs/sources.md names what is let through, and nothing else."""
    page = (repository / "docs" / "sources.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("| functions |")]
    assert {word.upper() for word in line.split("`")[1::2]} == FUNCTIONS | CASTS | {EXTRACT}
