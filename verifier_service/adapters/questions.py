"""What passes between the service and its grader processes: pickled questions and answers in frames, both ends being this package.

In a module of its own, so that both ends know the classes by the same name; the worker itself runs as __main__.
"""

import struct
from dataclasses import dataclass

from journeyman.errors import ErrorCode
from verifier_service.core.grading import Climb, Grading

LENGTH = struct.Struct(">I")
"""Head of a frame: the length of the pickle that follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to do with an object."""

    data: bytes
    """The recorded object."""
    only: int | None = None
    """Place of the one member to grade; None grades every distinct one."""
    is_control: bool = False
    """Grade an empty answer to the object's task instead: does the grader work at all?"""
    is_reading: bool = False
    """Grade nothing, only list the members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The object cannot be graded here."""

    code: ErrorCode
    message: str


Answer = Grading | Climb | Refusal
