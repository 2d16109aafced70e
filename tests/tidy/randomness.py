"""A lint of randomness: other generators, noise from floats, floats where draws are exact.

It reads syntax trees and follows names within a function, so it finds what somebody
writes who does not hide it.  ``tests/tidy/test_randomness.py`` plants one of each.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Modules and functions that draw, besides ``app.noise.source``.
GENERATORS: Final = (
    "_random",
    "numpy.random",
    "os.getrandom",
    "os.urandom",
    "random",
    "scipy.stats",
    "secrets",
    "sklearn.utils.check_random_state",
    "sklearn.utils.resample",
    "sklearn.utils.shuffle",
    "ssl.RAND_bytes",
    "uuid.uuid1",
    "uuid.uuid4",
)
# How a generator is asked, whoever made it and however it came.
_SAMPLERS = """
binomial choice choices exponential gauss geometric getrandbits gumbel integers laplace
multinomial multivariate_normal normal normalvariate poisson randbits randint random randrange
rvs sample shuffle standard_exponential standard_normal token_bytes triangular uniform
"""
SAMPLERS: Final = frozenset(_SAMPLERS.split())
DYNAMIC: Final = frozenset({"__import__", "attrgetter", "getattr", "import_module"})
# What a noise source gives that is uniform.  Noise of a discrete law may become a float.
UNIFORM: Final = frozenset({"below", "secret", "word", "words"})
# Of integers and rationals these are exact.
_INTEGER_FUNCTIONS = "ceil comb factorial floor gcd isqrt lcm perm"
INTEGER_FUNCTIONS: Final = frozenset(f"math.{name}" for name in _INTEGER_FUNCTIONS.split())
_FLOAT_FUNCTIONS = """
arctanh cos exp exp2 expm1 float16 float32 float64 ldexp log log10 log1p log2 power sin sqrt
tan true_divide
"""
FLOAT_FUNCTIONS: Final = frozenset(f"numpy.{name}" for name in _FLOAT_FUNCTIONS.split())


@dataclass(slots=True)
class Lint:
    """One module's findings.

    Attributes:
        tree: its syntax.
        names: what its names stand for, as dotted paths.

    """

    tree: ast.Module
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the imports, wherever they are."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    self.names[alias.asname or whole] = whole
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    self.names[alias.asname or alias.name] = f"{node.module}.{alias.name}"

    def generators(self) -> Iterator[tuple[int, str]]:
        """Find other generators: line and what is there."""
        for node in ast.walk(self.tree):
            for path in self._paths(node):
                if any(path == known or path.startswith(f"{known}.") for known in GENERATORS):
                    yield node.lineno, path  # type: ignore[attr-defined]  # a path's node has a line
            if isinstance(node, ast.Constant) and str(node.value).startswith("/dev/"):
                yield node.lineno, str(node.value)
            if isinstance(node, ast.Call):
                yield from self._asked(node)

    def _asked(self, call: ast.Call) -> Iterator[tuple[int, str]]:
        """Find a generator that is asked by its method, or imported by its name in a string."""
        name = self._last_name(call.func)
        if isinstance(call.func, ast.Attribute) and name in SAMPLERS:
            yield call.lineno, name
        if name in DYNAMIC:
            said = {node.value for node in ast.walk(call) if isinstance(node, ast.Constant)}
            yield from (
                (call.lineno, known)
                for known in GENERATORS
                if said & {known, known.rpartition(".")[2]}
            )

    def float_noise(self) -> Iterator[tuple[int, str]]:
        """Find uniform draws that become floats: line and what is done."""
        for function in ast.walk(self.tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                drawn = self._drawn_names(function)
                for node in ast.walk(function):
                    if self._makes_float(node) and self._is_drawn(node, drawn):
                        yield node.lineno, ast.unparse(node)  # type: ignore[attr-defined]  # an expression

    def floats(self) -> Iterator[tuple[int, str]]:
        """Find floats of any kind: line and what is there."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, float | complex):
                yield node.lineno, str(node.value)
            elif isinstance(node, ast.Name) and node.id == "float":
                yield node.lineno, node.id
            elif isinstance(node, ast.Call) and self._is_float_function(node.func):
                yield node.lineno, ast.unparse(node.func)

    def _paths(self, node: ast.AST) -> list[str]:
        """Return the dotted paths that a node imports or names."""
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom) and node.module:
            return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        return [path] if isinstance(node, ast.Attribute) and (path := self._dotted(node)) else []

    def _dotted(self, node: ast.expr) -> str:
        """Return an attribute's path from what its first name was imported as; else nothing."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id, "")
        if isinstance(node, ast.Attribute) and (front := self._dotted(node.value)):
            return f"{front}.{node.attr}"
        return ""

    @staticmethod
    def _last_name(function: ast.expr) -> str:
        if isinstance(function, ast.Attribute):
            return function.attr
        return function.id if isinstance(function, ast.Name) else ""

    def _is_float_function(self, function: ast.expr) -> bool:
        path = self._dotted(function)
        return path in FLOAT_FUNCTIONS or (
            path.startswith("math.") and path not in INTEGER_FUNCTIONS
        )

    def _makes_float(self, node: ast.AST) -> bool:
        """Whether a node turns its operands into floats."""
        if isinstance(node, ast.BinOp):
            constants = [node.left, node.right]
            return isinstance(node.op, ast.Div) or any(
                isinstance(one, ast.Constant) and isinstance(one.value, float) for one in constants
            )
        if isinstance(node, ast.Call):
            name = self._last_name(node.func)
            to_float = name == "astype" and "float" in ast.unparse(node)
            return name == "float" or to_float or self._is_float_function(node.func)
        return False

    def _drawn_names(self, function: ast.AST) -> set[str]:
        """Return the names that hold what was drawn, or what was computed of it."""
        drawn: set[str] = set()
        for _ in range(2):  # what a loop carries back is seen the second time
            for node in ast.walk(function):
                value = getattr(node, "value", None) or getattr(node, "iter", None)
                targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
                if isinstance(value, ast.expr) and self._is_drawn(value, drawn):
                    drawn |= {
                        name.id
                        for target in targets
                        if isinstance(target, ast.expr)
                        for name in ast.walk(target)
                        if isinstance(name, ast.Name)
                    }
        return drawn

    def _is_drawn(self, node: ast.AST, drawn: set[str]) -> bool:
        """Whether an expression holds a uniform draw; a comparison has decided already."""
        if isinstance(node, ast.Compare):
            return False
        if isinstance(node, ast.Name):
            return node.id in drawn
        if isinstance(node, ast.Call) and self._last_name(node.func) in UNIFORM:
            return True
        return any(self._is_drawn(child, drawn) for child in ast.iter_child_nodes(node))
