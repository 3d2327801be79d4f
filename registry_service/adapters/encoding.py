"""Records of the registry as JSON text in its ledger, and back. Pydantic checks what is read, since a file may be damaged."""

from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.records import PolicyRef
from registry_service.core.records import Decision, EvaluationSpec

T = TypeVar("T")

POLICY_REF = TypeAdapter(PolicyRef)
EVALUATION = TypeAdapter(EvaluationSpec)
DECISION = TypeAdapter(Decision)


def to_text(adapter: TypeAdapter[T], value: T) -> str:
    """JSON text; equal records give equal text."""
    return adapter.dump_json(value).decode()


def from_text(adapter: TypeAdapter[T], text: str) -> T:
    """CORRUPT when the text is not such a record."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise JourneymanError(ErrorCode.CORRUPT, f"the registry's ledger holds a damaged record: {error}") from error
