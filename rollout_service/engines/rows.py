"""Rows: what the decode loop knows of each cache slot, as arrays, so that a tick costs no Python work a row.

Called by decode_loop only, from its thread. Legend: S slots, T tokens.
"""

import numpy as np
import numpy.typing as npt

from rollout_service.core.turns import NewSequence

FREE = -1


class Rows:
    """Struct of arrays, one entry a slot."""

    def __init__(self, num_slots: int, max_tokens: int) -> None:
        self.sequence_S = np.full(num_slots, FREE, np.int64)
        self.tokens_ST = np.zeros((num_slots, max_tokens), np.int64)
        self.logprobs_ST = np.zeros((num_slots, max_tokens), np.float32)
        self.versions_ST = np.zeros((num_slots, max_tokens), np.int64)
        """Written where sampled; the rest is garbage, as for log-probabilities."""
        self.position_S = np.zeros(num_slots, np.int64)
        """Of the token that is fed next."""
        self.length_S = np.zeros(num_slots, np.int64)
        """Known tokens; the row is sampled when its last known token has been fed."""
        self.turn_start_S = np.zeros(num_slots, np.int64)
        self.turn_end_S = np.zeros(num_slots, np.int64)
        """Length at which the turn is cut."""
        self.max_turn_S = np.zeros(num_slots, np.int64)
        self.max_tokens_S = np.zeros(num_slots, np.int64)
        self.seed_S = np.zeros(num_slots, np.int64)
        self.temperature_S = np.zeros(num_slots)
        self.is_parked_S = np.zeros(num_slots, np.bool_)
        """Its turn has ended: it is fed the same token again and never sampled."""
        self.parked_at_S = np.zeros(num_slots, np.int64)
        """Tick."""
        self._every: tuple[npt.NDArray[np.generic], ...] = tuple(vars(self).values())

    def fill(self, slot: int, sequence: NewSequence) -> None:
        """A new sequence, its prompt but the last token cached."""
        length = len(sequence.prompt_ids)
        self.sequence_S[slot] = sequence.sequence_id
        self.tokens_ST[slot, :length] = sequence.prompt_ids
        self.position_S[slot] = length - 1
        self.length_S[slot] = length
        self.max_turn_S[slot] = sequence.max_turn_tokens
        self.max_tokens_S[slot] = sequence.max_tokens
        self.seed_S[slot] = sequence.seed
        self.temperature_S[slot] = sequence.temperature
        self.start_turn(slot)

    def append(self, slot: int, ids: npt.NDArray[np.int64]) -> None:
        """Tokens to be forced, then a turn."""
        length = int(self.length_S[slot])
        self.tokens_ST[slot, length : length + len(ids)] = ids
        self.length_S[slot] = length + len(ids)
        self.start_turn(slot)

    def start_turn(self, slot: int) -> None:
        """Sampling may begin once everything known is fed."""
        length = self.length_S[slot]
        self.turn_start_S[slot] = length
        self.turn_end_S[slot] = min(length + self.max_turn_S[slot], self.max_tokens_S[slot])
        self.is_parked_S[slot] = False

    def move(self, source: int, target: int) -> None:
        """The row at source is at target from now on."""
        for array in self._every:
            array[target] = array[source]
