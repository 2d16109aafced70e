"""The interface of every mechanism that answers queries.

**Algorithm.** A_PrivClass, the generic online classification-query release (Nandi and Bassily 2020,
Algorithm 1): for every query in turn, compute a label from the private data, the history and the
query, before the next query is known.

**Claim.** The interface has no claim; each implementation states its own.

**Proof.** ``app/privacy/voting/answering_mechanism_proof.md``.

**Inputs and outputs.** ``Parameters`` are public and validate themselves; ``State`` is a frozen
value. Each step takes one private value of a query (secret) and returns one ``Outcome`` (public).

**Utility.** Each implementation states its own.

**Deviations.** The history enters only through the state, so that the type of the state shows
everything on which an answer may depend.

**Raises.** ``InvariantError`` for a step in a state that has halted; the state does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from app.noise.source import NoiseSource

ParametersT_contra = TypeVar("ParametersT_contra", contravariant=True)
StateT = TypeVar("StateT")
PrivateT_contra = TypeVar("PrivateT_contra", contravariant=True)
OutcomeT_co = TypeVar("OutcomeT_co", covariant=True)


class AnsweringMechanism(Protocol[ParametersT_contra, StateT, PrivateT_contra, OutcomeT_co]):
    """The type of a mechanism's module, which has ``initial_state`` and ``step``."""

    def initial_state(self, parameters: ParametersT_contra, noise: NoiseSource) -> StateT:
        """Return the mechanism's state before the first query."""
        ...

    def step(
        self,
        parameters: ParametersT_contra,
        state: StateT,
        private_value: PrivateT_contra,
        noise: NoiseSource,
    ) -> tuple[StateT, OutcomeT_co]:
        """Return the next state and the public outcome of one query."""
        ...
