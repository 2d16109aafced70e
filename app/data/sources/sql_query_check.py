"""Checks, by the text of an SQL query, that it returns one row for each record.

If a record affected several rows, replacing one record would change several rows, and the privacy
promise would not apply. Therefore a query must be one ``SELECT`` of one table or view, with at most
``WHERE`` and ``ORDER BY``. Its expressions consist of columns, constants, and the operators, types
and functions that are listed here, each of which uses one row only. Any other word is refused, and
the error names it. The operator is responsible for the definition of a view, and for functions and
types of the database that have a listed name and do something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from app.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection

QUERY = "data.query"
NESTED_MAX: Final = 40
SHOWN_MAX: Final = 40
TOKEN = re.compile(
    r"""
    (?P<space> [ \t\r\n]+ )
  | (?P<text> '[^']*(?:''[^']*)*' )
  | (?P<name> "[^"]+(?:""[^"]*)*" | `[\w .-]+` )
  | (?P<number> (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.]) )
  | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
  | (?P<sign> ::|<>|!=|<=|>=|\|\||[-+*/%=<>(),.;] )
    """,
    re.VERBOSE,
)
QUOTES = ("'", '"', "`")
# Read as a comment, or as the inside of a text, by some databases and not by others.
UNCLEAR = {
    "--": "a comment (--)",
    "/*": "a comment (/*)",
    "#": "the sign #",
    "\\": "a backslash",
    "$$": "a text between $$",
    "\0": "a zero byte",
}
# Each gives one value for its arguments, and the same one whenever it is called.
_FUNCTIONS = """
    abs atan atan2 btrim cbrt ceil ceiling char_length character_length coalesce concat concat_ws
    cos date_part day degrees exp floor greatest if ifnull iif initcap instr isnull lcase least
    left len length ln log log10 log2 lower lpad ltrim mod month nullif nvl octet_length pow power
    quarter radians replace reverse right round rpad rtrim sign sin split_part sqrt strpos substr
    substring tan translate trim trunc truncate ucase upper year
"""
_TYPES = """
    bigint bool boolean char character decimal double float float4 float8 float64 int int2 int4
    int8 int64 integer nchar number numeric nvarchar real signed smallint string text tinyint
    unsigned varchar varchar2
"""
_PARTS_OF_TIME = """
    century day decade dow doy epoch hour isodow isoyear microseconds millennium milliseconds
    minute month quarter second week year
"""
# Never a column's name without quotes: words of the grammar, and those that combine, cut,
# repeat or rank records somewhere, or stand for a value of no column.
_RESERVED = """
    all and any apply array as asc asof between both by case cast collate connect connect_by_root
    cross current current_catalog current_date current_path current_role current_schema
    current_time current_timestamp current_user desc distinct distinctrow do else end
    escape except exclude exists false fetch filter final first for from full glob group having
    ilike in inner intersect interval into is join last lateral leading left like limit localtime
    localtimestamp lock match match_recognize minus multiset natural next not null nulls
    offset on only or order outer over partition pivot prewhere previous prior procedure qualify
    recursive regexp returning right rlike row rows safe_cast sample select semi session_user
    similar skip some straight_join symmetric sysdate system_user systimestamp table tablesample
    then to top trailing true try_cast union unique unknown unpivot user using values
    variadic when where window with within
"""
# Values of a row's place or writing, which are no column of its own, in quotes as well.
_PLACES = """
    _part _part_index _part_offset _rowid_ block__offset__inside__file cmax cmin ctid
    file_row_number oid ora_rowscn rowid rownum tableoid xmax xmin
"""
_OPERATORS = "+ - * / % || = <> != < <= > >= AND OR LIKE ILIKE BETWEEN ESCAPE"
FUNCTIONS = frozenset(_FUNCTIONS.upper().split())
CASTS = frozenset({"CAST", "SAFE_CAST", "TRY_CAST"})
EXTRACT: Final = "EXTRACT"
TYPES = frozenset(_TYPES.upper().split())
SECOND_WORDS = {"DOUBLE": "PRECISION", "CHARACTER": "VARYING", "SIGNED": "INTEGER"}
PARTS_OF_TIME = frozenset(_PARTS_OF_TIME.upper().split())
RESERVED = frozenset(_RESERVED.upper().split())
PLACES = frozenset(_PLACES.upper().split())
CONSTANTS = frozenset({"NULL", "TRUE", "FALSE"})
OPERATORS = frozenset(_OPERATORS.split())
NEGATED = frozenset({"LIKE", "ILIKE", "BETWEEN"})


def check_row_wise(query: str) -> None:
    """Refuse an SQL query whose text does not show that it returns one row for each record.

    Args:
        query: the SQL text, as it is sent to the database.

    Raises:
        ConfigurationError: the query has a word that is not accepted; the error names the first
            one, and the setting ``data.query``.

    """
    for sign, name in UNCLEAR.items():
        if sign in query:
            raise _refusal(f"{name} is read differently by different databases; leave it out")
    _Statement(_tokens(query.strip(" \t\r\n").removesuffix(";"))).check()


@dataclass(frozen=True)
class _Token:
    """A word in upper case, a name or a text with its quotes, a number, a sign, or the end."""

    kind: str
    word: str

    @property
    def is_name(self) -> bool:
        """Whether the token may name a column or a table."""
        if self.word.strip('"`').upper() in PLACES:
            return False
        return self.kind == "name" or (self.kind == "word" and self.word not in RESERVED)


END: Final = _Token("end", "")


def _tokens(query: str) -> list[_Token]:
    """Return what a query is made of, and its end."""
    found: list[_Token] = []
    position = 0
    while position < len(query):
        match = TOKEN.match(query, position)
        if match is None:
            sign = query[position]
            if sign in QUOTES:
                raise _refusal("has a quote that does not end, or a name that cannot be one")
            raise _refusal(f"the sign {sign!a} is not understood; a name with it needs quotes")
        position = match.end()
        kind = match.lastgroup or ""
        if kind != "space":
            found.append(_Token(kind, match[0].upper() if kind == "word" else match[0]))
    return [*found, END]


class _Statement:
    """A reader of tokens, each of whose steps takes what it knows and refuses the rest."""

    def __init__(self, tokens: list[_Token]) -> None:
        """Start at the first token of the SQL query."""
        self._tokens = tokens
        self._position = 0
        self._nested = 0

    def check(self) -> None:
        """Accept only ``SELECT ... FROM ... WHERE ... ORDER BY ...``; refuse all other SQL."""
        if not self._take("SELECT"):
            raise _refusal("must begin with SELECT")
        self._item()
        while self._take(","):
            self._item()
        if self._next == END:
            raise _refusal("must read FROM a table or a view")
        self._need("FROM")
        self._table()
        if self._take("WHERE"):
            self._expression()
        if self._take("ORDER"):
            self._need("BY")
            self._order()
            while self._take(","):
                self._order()
        if self._next != END:
            raise self._not_understood()

    @property
    def _next(self) -> _Token:
        return self._tokens[self._position]

    @property
    def _after(self) -> _Token:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    def _take(self, *words: str) -> bool:
        """Step over one of some words or signs, if it comes next."""
        if self._next.kind in ("word", "sign") and self._next.word in words:
            self._position += 1
            return True
        return False

    def _need(self, *words: str) -> None:
        if not self._take(*words):
            raise self._not_understood()

    def _item(self) -> None:
        """Take one column of the result: an alias without AS never follows a bare word."""
        if self._take("*"):
            return
        self._expression()
        before = self._tokens[self._position - 1]
        if self._take("AS"):
            self._name()
        elif self._next.is_name and before.word in (")", "END"):
            self._position += 1

    def _table(self) -> None:
        """Take one table or view by its name, of a schema perhaps, and an alias perhaps."""
        self._name()
        while self._take("."):
            self._name()
        if self._take("AS") or self._next.is_name:
            self._name()
        if self._next.word == ",":
            raise _refusal("reads from more than one table, which is not row-wise")
        if self._next.word == "(":
            raise _refusal("must read FROM one table or view, by its name")

    def _order(self) -> None:
        self._expression()
        self._take("ASC", "DESC")
        if self._take("NULLS"):
            self._need("FIRST", "LAST")

    def _name(self) -> None:
        if not self._next.is_name:
            raise self._not_understood()
        self._position += 1

    def _expression(self) -> None:
        """Take operands and what joins them; which binds closer does not matter here."""
        self._nested += 1
        if self._nested > NESTED_MAX:
            raise _refusal(f"is nested more than {NESTED_MAX} times")
        self._operand()
        while self._joined():
            pass
        self._nested -= 1

    def _joined(self) -> bool:
        """Take one operator and what it is applied to; False where none follows."""
        if self._take(*OPERATORS):
            self._operand()
        elif self._take("IS"):
            self._take("NOT")
            self._need("NULL", "TRUE", "FALSE", "UNKNOWN")
        elif self._take("::"):
            self._type()
        elif self._take("IN"):
            self._constants()
        elif self._take("NOT"):
            if self._take("IN"):
                self._constants()
            else:
                self._need(*NEGATED)
                self._operand()
        else:
            return False
        return True

    def _operand(self) -> None:
        """Take a constant, a column, a call, a CASE or an expression in parentheses."""
        while self._take("-", "+", "NOT"):
            pass
        if self._take("CASE"):
            self._case()
        elif self._after.word == "(" and self._next.kind in ("word", "name"):
            self._call()
        elif self._take("("):
            self._expression()
            self._need(")")
        elif self._next.kind in ("text", "number") or self._next.word in CONSTANTS:
            self._position += 1
        else:
            before = self._next.word
            self._name()
            if self._next.word == ".":
                # PostgreSQL reads people.count as count(people) where there is no such column.
                raise _refusal(f"{_shown(before)} and a dot before a column: leave both out")

    def _case(self) -> None:
        if self._next.word != "WHEN":
            self._expression()
        self._need("WHEN")
        while True:
            self._expression()
            self._need("THEN")
            self._expression()
            if not self._take("WHEN"):
                break
        if self._take("ELSE"):
            self._expression()
        self._need("END")

    def _constants(self) -> None:
        """Take constants in parentheses; a name may be a table's there."""
        self._need("(")
        while True:
            self._take("-", "+")
            if self._next.kind not in ("text", "number") and self._next.word not in CONSTANTS:
                raise self._not_understood()
            self._position += 1
            if not self._take(","):
                break
        self._need(")")

    def _call(self) -> None:
        """Take a function that is known to read one row."""
        name = self._next.word
        if name not in FUNCTIONS | CASTS | {EXTRACT}:
            if name in RESERVED:
                raise self._not_understood()
            raise _refusal(f"{_shown(name.lower())}() is not row-wise, or not known to be")
        self._position += 2
        if name in CASTS:
            self._expression()
            self._need("AS")
            self._type()
        elif name == EXTRACT:
            self._need(*PARTS_OF_TIME)
            self._need("FROM")
            self._expression()
        else:
            self._arguments(name)
        self._need(")")

    def _arguments(self, name: str) -> None:
        """Take arguments between commas, or between the words that standard SQL has."""
        between: Collection[str] = (",",)
        if name == "TRIM" and self._take("BOTH", "LEADING", "TRAILING"):
            between = ("FROM",)
            if self._take("FROM"):
                between = ()
        elif name in ("TRIM", "SUBSTRING"):
            between = (",", "FROM", "FOR")
        self._expression()
        while self._take(*between):
            self._expression()

    def _type(self) -> None:
        """Take a type of numbers, text or truth, and its sizes."""
        first = self._next.word
        if self._next.kind != "word" or first not in TYPES:
            raise self._not_understood()
        self._position += 1
        if first in SECOND_WORDS:
            self._take(SECOND_WORDS[first])
        if self._take("("):
            self._size()
            if self._take(","):
                self._size()
            self._need(")")

    def _size(self) -> None:
        if self._next.kind != "number":
            raise self._not_understood()
        self._position += 1

    def _not_understood(self) -> ConfigurationError:
        """Return the refusal of what comes next, by its name."""
        token = self._next
        if token == END:
            return _refusal("ends too early")
        if token.word == ";":
            return _refusal("must be one statement")
        if token.word.strip('"`').upper() in PLACES:
            return _refusal(f"{_shown(token.word)} is the place of a row and no column of its own")
        if token.word in RESERVED:
            quotes = "a column of that name needs quotes"
            spoken = "GROUP BY" if token.word == "GROUP" else token.word
            return _refusal(f"{spoken} is not row-wise, or not known to be; {quotes}")
        before = self._tokens[self._position - 1].word
        return _refusal(f"{_shown(token.word)} is not understood after {_shown(before)}")


def _shown(word: str) -> str:
    """Return a word as one short line."""
    return ascii(word)[1:-1][:SHOWN_MAX]


def _refusal(problem: str) -> ConfigurationError:
    """Return the refusal of a query."""
    return ConfigurationError(QUERY, f"{problem} (every row must come from one record)")
