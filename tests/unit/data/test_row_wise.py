"""A query that is not row-wise by its text is refused in one line."""

from __future__ import annotations

import pytest

from app.data.row_wise import check_row_wise
from app.errors import ConfigurationError

ROW_WISE = [
    "select * from people",
    "SELECT age, hours FROM people;",
    'select "count" as n, `group` from "my schema"."the people" p where p.age > 17 order by 1',
    "select extract(year from born) as year, substring(name from 1 for 3) s from people",
    "select cast(age as real) as age, coalesce(work, '?') work from people where sex in ('F', 'M')",
    "select 'group by, join; union' as work, age from people as p",
    "select case when age >= 18 then 'adult' else 'it''s a child' end c, x from a.b.people",
    "select age from people where (a or (b and not c)) and d between 1 and 2",
]

# The query, and what is said of it.
REFUSED = [
    ("select count(*) from people", "count() is not row-wise"),
    ("select SUM (age) from people", "sum() is not row-wise"),
    ('select "avg"(age) from people', "avg() is not row-wise"),
    ("select schema.string_agg(x, y) from people", "string_agg() is not row-wise"),
    ("select unnest(ages) as age from people", "unnest() is not row-wise"),
    ("select rank() over (order by age) from people", "OVER is not row-wise"),
    ("select age from people window w as ()", "WINDOW is not row-wise"),
    ("select distinct age from people", "DISTINCT is not row-wise"),
    ("select age from people group\nby age", "GROUP BY is not row-wise"),
    ("select age from people having age > 1", "HAVING is not row-wise"),
    ("select age from people join pets on a = b", "JOIN is not row-wise"),
    ("select age from people natural join pets", "JOIN is not row-wise"),
    ("select age from people p, pets", "reads from more than one table"),
    ("select age from people straight_join pets", "must read FROM one table or view"),
    ("select age from people union all select age from people", "UNION is not row-wise"),
    ("select age from people except select age from others", "EXCEPT is not row-wise"),
    ("select age from people limit 10", "LIMIT is not row-wise"),
    ("select top 10 age from people", "TOP is not row-wise"),
    ("select age from people fetch first 10 rows only", "FETCH is not row-wise"),
    ("select age from people where rownum < 10", "ROWNUM is not row-wise"),
    ("select age from people tablesample system (10)", "TABLESAMPLE is not row-wise"),
    ("with p as (select 1) select age from p", "must begin with SELECT"),
    ("(select age from people)", "must begin with SELECT"),
    ("delete from people", "must begin with SELECT"),
    ("", "must begin with SELECT"),
    ("select age into others from people", "INTO is not row-wise"),
    ("select age from (select age from people) p", "a SELECT inside another"),
    ("select age from people where age > (select 1 from x)", "a SELECT inside another"),
    ("select age from range(10)", "must read FROM one table or view"),
    ("select age from people for update", "must read FROM one table or view"),
    ("select age from people where a for update", "and no more"),
    ("select 1", "must read FROM a table or a view"),
    ("select age from people; select 1", "must be one statement"),
    ("select age from people -- all of them", "a comment (--)"),
    ("select /*! distinct */ age from people", "a comment (/*)"),
    ("select age from people # all of them", "the sign #"),
    (r"select '\'', count(*) from people", "a backslash"),
    ("select $$ ' $$, age from people", "a text between $$"),
    ("select 'age from people", "a quote that does not end"),
    ("select (age from people", "a parenthesis that does not end"),
    ("select age) from people", "a parenthesis that does not end"),
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
