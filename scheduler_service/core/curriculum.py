"""Which domain and level a train run admits next, and what each judged group teaches about that. Called by planning.py and accounting.py.

Per (domain, level) a Beta posterior of passing, in which old evidence fades because the policy changes. A domain weighs
BASE + sqrt(p(1-p)) by its recent pass rate p; domains are interleaved by those weights exactly (least virtual time first), not drawn,
so that a step of few groups still sees all of them. A level is drawn by how learnable it may be under its posterior. Seeded throughout.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from scheduler_service.core.run import DomainRecord, LevelRecord, Standing

BASE_WEIGHT = 0.12
"""Weight of a domain that always or never passes: seldom, never not at all."""
UNKNOWN_PASS_RATE = 0.5
RECENT = 0.15
"""Weight of the newest group in the recent pass rate."""
KEEP = 0.9
"""Share of a level's old evidence that stays when a group is added."""
EQUAL_IN_ROW = 8
"""All-equal groups in a row after which a domain is mastered or stuck."""
THINNED = 0.25
"""Factor on the weight of a mastered or stuck domain."""
LEVEL_FLOOR = 0.05
"""Learnability credited to any level, so that each is tried now and then."""


def weight(record: DomainRecord) -> float:
    """How much of the admissions a domain should get, relative to the others; never 0."""
    rate = UNKNOWN_PASS_RATE if record.recent_pass_rate is None else record.recent_pass_rate
    thinned = THINNED if record.standing is not Standing.LEARNING else 1.0
    return thinned * (BASE_WEIGHT + math.sqrt(rate * (1.0 - rate)))


def next_domain(records: Sequence[DomainRecord], rng: random.Random) -> DomainRecord:
    """The domain with the least virtual time after its next group; ties are broken by the seed."""
    order = list(records)
    rng.shuffle(order)
    return min(order, key=lambda record: record.virtual_time + 1.0 / weight(record))


def admitted(record: DomainRecord, level: int) -> DomainRecord:
    """The record after one more group of this level was admitted."""
    levels = tuple(
        replace(entry, num_drawn=entry.num_drawn + 1) if entry.level == level else entry for entry in record.levels
    )
    return replace(
        record,
        levels=levels,
        num_admitted=record.num_admitted + 1,
        virtual_time=record.virtual_time + 1.0 / weight(record),
    )


def next_level(record: DomainRecord, rng: random.Random) -> int:
    """A level, drawn in proportion to sqrt(p(1-p)) for a p sampled from its posterior."""
    chances = [LEVEL_FLOOR + _sampled_learnability(entry, rng) for entry in record.levels]
    return rng.choices([entry.level for entry in record.levels], chances)[0]


def _sampled_learnability(entry: LevelRecord, rng: random.Random) -> float:
    rate = rng.betavariate(entry.alpha, entry.beta)
    return math.sqrt(rate * (1.0 - rate))


def learnt(record: DomainRecord, level: int, num_passed: int, num_graded: int, *, is_equal: bool) -> DomainRecord:
    """The record after a group was judged. is_equal says that all its rewards were equal."""
    if num_graded == 0:
        return record
    rate = num_passed / num_graded
    before = record.recent_pass_rate
    recent = rate if before is None else before + RECENT * (rate - before)
    in_row = record.num_equal_in_row + 1 if is_equal else 0
    levels = tuple(
        _updated(entry, num_passed, num_graded - num_passed) if entry.level == level else entry
        for entry in record.levels
    )
    return replace(
        record, levels=levels, recent_pass_rate=recent, num_equal_in_row=in_row, standing=_standing(in_row, recent)
    )


def _updated(entry: LevelRecord, num_passed: int, num_failed: int) -> LevelRecord:
    return replace(
        entry,
        alpha=1.0 + (entry.alpha - 1.0) * KEEP + num_passed,
        beta=1.0 + (entry.beta - 1.0) * KEEP + num_failed,
    )


def _standing(num_equal_in_row: int, recent_pass_rate: float) -> Standing:
    if num_equal_in_row < EQUAL_IN_ROW:
        return Standing.LEARNING
    return Standing.MASTERED if recent_pass_rate >= 0.5 else Standing.STUCK
