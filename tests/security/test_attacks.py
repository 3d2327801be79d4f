"""Every attack on every kind of isolation that can be had here, each with its positive control: uncontained, it succeeds.

One process for each kind carries out all of its attacks (storm.py), in throw-away namespaces, so that one that gets through harms nothing.
"""

import os

import pytest

from journeyman.testing.missing import missing
from tests.security.attack import Attack
from tests.security.attacks import ATTACKS
from tests.security.table import BEGIN, END, PAGE, rendered, written
from tests.security.verdicts import ISOLATIONS, UNCONTAINED, Verdict, Verdicts, no_namespaces, verdicts_of

pytestmark = pytest.mark.timeout(420)
IS_ROOT = os.geteuid() == 0
NEEDS_ROOT = ("ns-root", "runsc", "weak")
"""As an ordinary user, weak boxes have fewer rights than the table says."""
by_name = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)


@pytest.fixture(scope="module", autouse=True)
def _needs_namespaces() -> None:
    if reason := no_namespaces():
        missing(f"no throw-away namespaces for attacks: {reason}")


@pytest.fixture(params=ISOLATIONS, scope="module")
def isolation(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if name in NEEDS_ROOT and not IS_ROOT:
        pytest.skip("needs root")
    if reason := verdicts_of(name).not_here:
        missing(reason)
    return name


def _needs_control(attack: Attack) -> None:
    control = verdicts_of(UNCONTAINED).rows[attack.name]
    assert not control.error, control
    if not control.loot:
        pytest.skip("not possible here: uncontained, it brings nothing home either")


def _expected(attack: Attack, isolation: str, found: Verdicts) -> Verdict:
    if attack.needs:
        return Verdict.CONTAINED if attack.needs in found.enforced else Verdict.THROUGH
    return written()[attack.name, isolation]


def test_there_are_enough_attacks_and_nearly_all_succeed_uncontained() -> None:
    rows = verdicts_of(UNCONTAINED).rows
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) == len(rows)
    assert sum(bool(row.loot) for row in rows.values()) >= 60, [name for name, row in rows.items() if not row.loot]


@by_name
def test_the_committed_table_is_what_happens(attack: Attack, isolation: str) -> None:
    _needs_control(attack)
    found = verdicts_of(isolation)
    row = found.rows[attack.name]
    assert row.verdict is _expected(attack, isolation, found), row


@by_name
def test_ns_root_contains_everything_and_says_how_it_ended(attack: Attack, request: pytest.FixtureRequest) -> None:
    if not IS_ROOT:
        pytest.skip("needs root")
    found = verdicts_of("ns-root")
    if found.not_here:
        missing(found.not_here)
    if attack.needs and attack.needs not in found.enforced:
        pytest.skip(f"{attack.needs} of a whole box is not limited here, which GetCapabilities says")
    row = found.rows[attack.name]
    assert row.verdict is Verdict.CONTAINED, row
    assert not attack.endings or row.ending in attack.endings, row


def test_the_table_on_the_page_is_whole() -> None:
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0].strip()
    assert text == rendered(written()), "run python -m tests.security.table"
