"""Settings of the operator behind a stream or a sink: its name, its uid, where and how often it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.common.constants import UPPER_BOUND_MAX_PARALLELISM
from penstock.common.exceptions import InvalidProgramError
from penstock.datastream.on_error import OnError
from penstock.datastream.slot_sharing_group import SlotSharingGroup
from penstock.graph.descriptions import SinkDescription
from penstock.graph.transformations import ChainingStrategy, PhysicalTransformation, Transformation

if TYPE_CHECKING:
    from typing_extensions import Self


def check_parallelism(parallelism: int, what: str) -> int:
    """The parallelism; raises unless it is a whole number of at least 1. `what` begins the message."""
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise InvalidProgramError(f"{what}: the parallelism must be a whole number of at least 1, got {parallelism!r}")
    return parallelism


class OperatorSettings:
    """What streams and sinks share. Every method changes the operator before, and returns the stream or sink."""

    transformation: Transformation

    def uid(self, uid: str) -> Self:
        """A name for the operator's state that survives changes of the program; unique within the job.

        Without one, state finds its operator by the place in the program, which changes when an operator is added
        before it.

        >>> totals = env.from_collection([("a", 1)]).key_by(lambda pair: pair[0]).sum(1).uid("totals")
        """
        self._operator("uid()").uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> Self:
        """The id of the operator in an older job, as 32 hexadecimal digits, to take over its state."""
        self._operator("set_uid_hash()").uid_hash = uid_hash
        return self

    def set_description(self, description: str) -> Self:
        """A longer text for plans; the name stays."""
        self._operator("set_description()").description = description
        return self

    def set_parallelism(self, parallelism: int) -> Self:
        """How many subtasks the operator has; the environment's default unless set.

        >>> env.from_collection([1]).map(str).set_parallelism(4).transformation.parallelism
        4
        """
        operator = self._operator("set_parallelism()")
        check_parallelism(parallelism, operator.name)
        if operator.is_parallelism_fixed and parallelism != operator.parallelism:
            raise InvalidProgramError(
                f"operator '{operator.name}' cannot run in parallel; its parallelism is {operator.parallelism}, got "
                f"{parallelism}"
            )
        operator.parallelism = parallelism
        return self

    def on_error(self, on_error: OnError) -> Self:
        """What happens to an element for which the operator's function raises; by default the job fails.

        >>> numbers = env.from_collection(["1", "two", "3"]).map(int).on_error(OnError.skip())
        >>> list(numbers.execute_and_collect())
        [1, 3]
        """
        operator = self._operator("on_error()")
        if not isinstance(on_error, OnError):
            raise TypeError(f"on_error() needs an OnError, got {on_error!r}; write on_error(OnError.skip())")
        if not operator.operator.takes_on_error:
            raise InvalidProgramError(
                f"operator '{operator.name}': on_error() is for functions that are called for each element: map, "
                f"flat_map, filter, process, reduce, async and sink functions; filter out before it what it cannot take"
            )
        if on_error.tag is not None and isinstance(operator.operator, SinkDescription):
            raise InvalidProgramError(
                f"operator '{operator.name}' is a sink and has no side output; use OnError.skip(), or keep what cannot "
                f"be written apart before it"
            )
        operator.on_error = on_error
        return self

    def disable_chaining(self) -> Self:
        """Run the operator by itself, outside of any chain."""
        self._operator("disable_chaining()").chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """The group of operators that may share a slot with this one; operators behind it inherit the group."""
        group = slot_sharing_group
        name = group if isinstance(group, str) else group.get_name()
        self._operator("slot_sharing_group()").slot_sharing_group = name
        return self

    def _operator(self, setting: str) -> PhysicalTransformation:
        if not isinstance(self.transformation, PhysicalTransformation):
            raise InvalidProgramError(
                f"{setting} applies to an operator, but here it follows a {self.transformation.name}, and that is not "
                f"an operator; call it right after the operator it is meant for"
            )
        return self.transformation

    def __repr__(self) -> str:
        at = self.transformation
        uid = getattr(at, "uid", None)
        known_as = "" if uid is None else f", uid {uid!r}"
        return f"<{type(self).__name__} {at.name!r}, id {at.id}{known_as}, parallelism {at.parallelism}>"


class StreamSettings(OperatorSettings):
    """What only streams have: settings of an operator that others may follow."""

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """The number of key groups of the operator: the most subtasks that its state can ever be spread over."""
        operator = self._operator("set_max_parallelism()")
        if not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
            raise InvalidProgramError(
                f"operator '{operator.name}': max parallelism must be between 1 and {UPPER_BOUND_MAX_PARALLELISM}, got "
                f"{max_parallelism}"
            )
        operator.max_parallelism = max_parallelism
        return self

    def force_non_parallel(self) -> Self:
        """One subtask for the operator, whatever is set later."""
        operator = self._operator("force_non_parallel()")
        operator.parallelism = operator.max_parallelism = 1
        operator.is_parallelism_fixed = True
        return self

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Like `env.set_buffer_timeout(...)`; a job uses the shortest one that is set anywhere in it."""
        self._operator("set_buffer_timeout()").buffer_timeout_ms = timeout_millis
        return self

    def start_new_chain(self) -> Self:
        """Begin a new chain with the operator: it no longer runs together with the operators before it."""
        self._operator("start_new_chain()").chaining = ChainingStrategy.HEAD
        return self
