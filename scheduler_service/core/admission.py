"""How many groups a run may have in flight, and when it is over. Called by playing.py and draft.py.

A slot is held from admission until TAKEN, DROPPED or CLOSED, and never longer: a checkpoint interval must not starve admission.
"""

from scheduler_service.core.planning import has_next
from scheduler_service.core.run import Run, RunState


def free_slots(run: Run) -> int:
    """Groups that may be admitted now."""
    if run.state is not RunState.ACTIVE:
        return 0
    return max(0, run.spec.admission_slots - run.totals.in_flight - run.totals.ready)


def is_over(run: Run) -> bool:
    """Whether nothing is in flight and nothing is to come. A train run and one fed by its client end only by CloseRun."""
    if run.totals.unfinished > 0:
        return False
    match run.state:
        case RunState.FINISHED | RunState.DRAINING:
            return True
        case RunState.ACTIVE:
            return bool(run.spec.domains) and not has_next(run)
