"""Until when boxes live. Pure: the clock is the caller's."""


class Leases:
    """Ends of leases by box id, in seconds of the caller's clock."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}

    def grant(self, box_id: str, until_s: float) -> None:
        """Sets or moves an end; never to an earlier time."""
        self._until_s[box_id] = max(until_s, self._until_s.get(box_id, until_s))

    def drop(self, box_id: str) -> None:
        """Forgets a box."""
        self._until_s.pop(box_id, None)

    def expired(self, now_s: float) -> list[str]:
        """Boxes whose lease has ended, earliest first."""
        over = [(until_s, box_id) for box_id, until_s in self._until_s.items() if until_s <= now_s]
        return [box_id for _, box_id in sorted(over)]

    def until_s(self, box_id: str) -> float:
        """End of a box's lease. KeyError where there is none."""
        return self._until_s[box_id]
