"""No second of a slot is lost or counted twice, whatever the episodes do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_service.core.slot_time import Cause, SlotTime

NUM_SLOTS = 8


@given(st.data())
def test_all_slots_are_accounted_for_at_all_times(data: st.DataObject) -> None:
    slots, now_s = SlotTime(NUM_SLOTS, 100.0), 100.0
    busy: list[Cause] = []
    reported = 0.0
    for _ in range(data.draw(st.integers(0, 25))):
        now_s += data.draw(st.floats(0, 5))
        match data.draw(st.sampled_from(["occupy", "move", "release", "free", "swap", "report"])):
            case "occupy" if len(busy) < NUM_SLOTS:
                busy.append(cause := data.draw(st.sampled_from(Cause)))
                slots.occupy(cause, 1, now_s)
            case "move" if busy:
                target = data.draw(st.sampled_from(Cause))
                slots.move(busy[0], target, 1, now_s)
                busy[0] = target
            case "release" if busy:
                slots.release(busy.pop(), 1, now_s)
            case "free":
                slots.free_slots_are(data.draw(st.sampled_from(Cause)), now_s)
            case "swap":
                slots.charge_swap(data.draw(st.floats(0, 3)), now_s)
            case "report":
                report = slots.unreported(now_s)
                slots.mark_reported(report)
                reported += sum(report.values())
        assert slots.num_busy == len(busy)
        assert slots.num_free == NUM_SLOTS - len(busy)
    totals = slots.totals(now_s)
    assert sum(totals.values()) == pytest.approx(NUM_SLOTS * (now_s - 100.0))
    assert all(seconds >= 0 for seconds in totals.values())


def test_a_report_that_did_not_arrive_is_sent_again() -> None:
    slots = SlotTime(2, 0.0)
    slots.free_slots_are(Cause.NO_LEASE, 1.0)
    first = slots.unreported(2.0)
    assert first == {"starting": 2.0, "no_lease": 2.0}
    assert slots.unreported(2.0) == first
    slots.mark_reported(first)
    assert slots.unreported(2.0) == {}
    slots.occupy(Cause.DECODE, 1, 3.0)
    assert slots.unreported(4.0) == {"no_lease": 3.0, "decode": 1.0}


def test_a_swap_is_taken_from_decoding_slots() -> None:
    slots = SlotTime(4, 0.0)
    slots.occupy(Cause.DECODE, 3, 0.0)
    slots.charge_swap(0.5, 2.0)
    assert slots.totals(2.0) == {"starting": 2.0, "decode": 4.5, "weights": 1.5}
