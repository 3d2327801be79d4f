"""How many boxes are made ahead: as many as were asked for lately, within bounds."""

from hypothesis import given
from hypothesis import strategies as st

from sandbox_service.adapters.zygote.confinement import Started
from sandbox_service.adapters.zygote.spares import Spares

MAX_SPARES = 5


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def box(number: int) -> Started:
    return Started(pid=number, slot=number)


def fill(spares: Spares, first: int = 0) -> None:
    while spares.wants_more():
        spares.add(box(first + len(spares)))


def test_a_few_wait_before_anybody_has_asked() -> None:
    spares = Spares(MAX_SPARES, Clock())
    fill(spares)
    assert len(spares) == 2
    assert spares.surplus() is None


def test_demand_makes_more_up_to_the_bound_and_its_end_gives_them_back() -> None:
    clock = Clock()
    spares = Spares(MAX_SPARES, clock)
    for _ in range(20):
        spares.take()
    fill(spares)
    assert len(spares) == MAX_SPARES
    assert spares.surplus() is None
    clock.now_s += 60.0
    given_back = [spares.surplus() for _ in range(4)]
    assert [one is not None for one in given_back] == [True, True, True, False]
    assert len(spares) == 2


def test_none_are_made_where_none_may_be() -> None:
    spares = Spares(0, Clock())
    assert spares.take() is None
    assert not spares.wants_more()


def test_the_one_that_waited_longest_is_taken_and_dead_ones_never() -> None:
    spares = Spares(MAX_SPARES, Clock())
    for number in (1, 2, 3):
        spares.add(box(number))
    spares.discard(box(2))
    spares.discard(box(9))
    assert [spares.take(), spares.take(), spares.take()] == [box(1), box(3), None]


@given(st.lists(st.sampled_from(["take", "wait", "fill", "surplus"]), max_size=60))
def test_there_are_never_more_than_the_bound_and_never_twice_the_same(steps: list[str]) -> None:
    clock = Clock()
    spares = Spares(MAX_SPARES, clock)
    made, gone = 0, []
    for step in steps:
        if step == "wait":
            clock.now_s += 4.0
        elif step == "fill":
            while spares.wants_more():
                spares.add(box(made))
                made += 1
        elif (one := spares.take() if step == "take" else spares.surplus()) is not None:
            gone.append(one.pid)
        assert len(spares) <= MAX_SPARES
    assert len(set(gone)) == len(gone)
    assert len(spares) == made - len(gone)
