"""Whether a query gives one row for each record, as far as its text can tell.

One record must reach one row, or replacing it moves more than one.  So a query
is one ``SELECT`` of one table or view, with ``WHERE`` and ``ORDER BY`` at most;
what combines, repeats, counts or cuts records is refused by its name.  What a
view or a function does inside is for the operator to answer for.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

QUERY = "data.query"
TOKEN = re.compile(
    r"""
    (?P<text> '(?:[^']|'')*' )
  | (?P<quoted> "(?:[^"]|"")*" | `[^`]*` )
  | (?P<word> \w+ )
  | (?P<sign> \S )
    """,
    re.VERBOSE | re.DOTALL,
)
QUOTES = ("'", '"', "`")
# Read as a comment, or as the inside of a text, by some databases and not by others.
UNCLEAR = {
    "--": "a comment (--)",
    "/*": "a comment (/*)",
    "#": "the sign #",
    "\\": "a backslash",
    "$$": "a text between $$",
}
_REFUSED_WORDS = """
    apply connect distinct except fetch group having intersect into join lateral limit minus
    offset over pivot qualify rownum sample tablesample top union unique unpivot window with
"""
_AGGREGATES = """
    any_value approx_count_distinct approx_quantile arg_max arg_min argmax argmin array_agg
    arrayagg avg bit_and bit_or bit_xor bool_and bool_or checksum_agg collect_list collect_set
    corr count count_big count_if countif covar_pop covar_samp every first group_concat
    grouping hll histogram json_agg json_arrayagg json_group_array json_group_object
    json_object_agg json_objectagg jsonb_agg jsonb_group_array jsonb_group_object
    jsonb_object_agg kurtosis last list listagg mad max max_by mean median min min_by mode
    percentile percentile_cont percentile_disc product quantile range_agg regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some
    std stddev stddev_pop stddev_samp stdev stdevp string_agg sum total var var_pop var_samp
    variance varp wm_concat xmlagg
    cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank
    row_number
"""
_REPEATING = """
    explode explode_outer flatten generate_series generate_subscripts inline json_array_elements
    json_array_elements_text json_each json_each_text json_object_keys json_populate_recordset
    json_to_recordset json_tree jsonb_array_elements jsonb_array_elements_text jsonb_each
    jsonb_each_text jsonb_object_keys jsonb_path_query jsonb_populate_recordset
    jsonb_to_recordset openjson posexplode regexp_matches regexp_split_to_table split_to_table
    stack string_split string_to_table unnest xmltable
"""
REFUSED_WORDS = frozenset(_REFUSED_WORDS.upper().split())
AGGREGATES = frozenset(_AGGREGATES.split())
REPEATING = frozenset(_REPEATING.split())
AFTER_TABLE = ("WHERE", "ORDER")
# A name, of a schema perhaps, and an alias perhaps.
TABLE = re.compile(r"n(\.n)*(A?n)?")


def check_row_wise(query: str) -> None:
    """Refuse a query whose text is not row-wise.

    Args:
        query: SQL, as given to the database.

    Raises:
        ConfigurationError: what is in it, in one line that names ``data.query``.

    """
    for sign, name in UNCLEAR.items():
        if sign in query:
            raise _refusal(f"{name} is read differently by different databases; leave it out")
    words = _words(query.strip().removesuffix(";"))
    _check_words(words)
    _check_calls(words)
    _check_shape(words)


def _words(query: str) -> list[str]:
    """Return words in upper case, names in quotes with their quotes, and signs."""
    found: list[str] = []
    for match in TOKEN.finditer(query):
        word = match[0]
        if word in QUOTES:
            raise _refusal("has a quote that does not end")
        found.append(word.upper() if match.lastgroup == "word" else word)
    return found


def _check_words(words: Sequence[str]) -> None:
    """Refuse by name what no row-wise query has."""
    if words[:1] != ["SELECT"]:
        raise _refusal("must begin with SELECT")
    for word in words:
        if word in REFUSED_WORDS:
            spoken = "GROUP BY" if word == "GROUP" else word
            raise _refusal(f"{spoken} is not row-wise; a column of that name needs quotes")
    if ";" in words:
        raise _refusal("must be one statement")
    if words.count("SELECT") > 1:
        raise _refusal("a SELECT inside another is not row-wise")


def _check_calls(words: Sequence[str]) -> None:
    """Refuse functions of several rows, and those that make several rows of one."""
    for word, following in pairwise(words):
        if following != "(":
            continue
        name = word.strip('"`').lower()
        if name in AGGREGATES:
            raise _refusal(f"{name}() is not row-wise: it takes in several records")
        if name in REPEATING:
            raise _refusal(f"{name}() is not row-wise: it makes several rows of one record")


def _check_shape(words: Sequence[str]) -> None:
    """Accept one table or view, then a condition and an order at most."""
    outer = list(_outer(words))
    if "FROM" not in outer:
        raise _refusal("must read FROM a table or a view")
    following = outer[outer.index("FROM") + 1 :]
    end = next((i for i, word in enumerate(following) if word in AFTER_TABLE), len(following))
    if "," in following[:end]:
        raise _refusal("reads from more than one table, which is not row-wise")
    if not TABLE.fullmatch("".join(map(_kind, following[:end]))):
        raise _refusal("must read FROM one table or view, by its name")
    if "FROM" in following or "FOR" in following:
        raise _refusal("must be SELECT ... FROM ... WHERE ... ORDER BY ..., and no more")


def _outer(words: Sequence[str]) -> Iterator[str]:
    """Yield what is in no parentheses, and the first of each that open."""
    depth = 0
    for word in words:
        if depth == 0:
            yield word
        depth += (word == "(") - (word == ")")
    if depth:
        raise _refusal("has a parenthesis that does not end, or does not begin")


def _kind(word: str) -> str:
    """Return one letter for the kind of a word: a name, AS, or the sign itself."""
    if word == "AS":
        return "A"
    return "n" if word[0] in '"`_' or word[0].isalnum() else word


def _refusal(problem: str) -> ConfigurationError:
    """Return the refusal of a query."""
    return ConfigurationError(QUERY, f"{problem} (every row must come from one record)")
