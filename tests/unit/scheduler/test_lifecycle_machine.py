"""The scheduler's decisions under everything that can happen: crashes, repeats, delays and reordering at every transition.

The machine keeps what the ledger keeps, as text and bytes. Every decision may be lost before it is stored, or the process may die right
after; then the working set is rebuilt from what was stored. Facts wait in a pool from which they are delivered in any order, more than once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from types import SimpleNamespace
from typing import cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Row

from journeyman.records import (
    Attribution,
    LatestPolicy,
    ObjectRef,
    PolicyRef,
    PolicyVersion,
    Split,
    Verdict,
    VerdictStatus,
)
from journeyman.testing.scripted_tasks import ScriptedTasks
from scheduler_service.adapters.encoding import RUN, from_text, to_text
from scheduler_service.adapters.rows import audit_row_of, changed_group_columns, group_of, new_group_columns
from scheduler_service.core import playing, results, run_rules
from scheduler_service.core.audit import audit
from scheduler_service.core.group import DropReason, Fact, FactKind, Group, GroupState, RolloutState
from scheduler_service.core.group_state import JudgedMember, MemberRecord
from scheduler_service.core.leasing import Ask
from scheduler_service.core.playing import AttemptName
from scheduler_service.core.results import Committed, DroppedByTrainer, Incoming, Recorded, Taken, Verified
from scheduler_service.core.run import DomainShare, Run, RunKind, RunSpec, RunState
from scheduler_service.core.working_set import Batch, Draft, Stored, TaskName, WorkingSet
from scheduler_service.facts import to_outgoing

SOURCE = ScriptedTasks({"math.tool": (1, 2), "code.repair": (1,)})
WORKERS = ("w1", "w2")
LEASE_S = 10.0
LOADED = PolicyRef(
    run_id="train", version=PolicyVersion(incarnation=1, step=0), uri="policies/train/1.0", manifest_sha256="00"
)
ALLOWED = {
    GroupState.ADMITTED: {GroupState.OPEN, GroupState.DROPPED},
    GroupState.OPEN: {GroupState.READY, GroupState.CLOSED, GroupState.DROPPED},
    GroupState.READY: {GroupState.TAKEN, GroupState.COMMITTED, GroupState.DROPPED},
    GroupState.TAKEN: {GroupState.COMMITTED, GroupState.DROPPED},
}
INFRASTRUCTURE = [item for item in Attribution if item.is_infrastructure]


class Crash(StrEnum):
    """What befalls the process around storing a decision."""

    NONE = "none"
    BEFORE_STORING = "before storing"
    AFTER_STORING = "after storing"


crashes = st.sampled_from([Crash.NONE] * 8 + [Crash.BEFORE_STORING, Crash.AFTER_STORING])


def spec(run_id: str, kind: RunKind) -> RunSpec:
    num_groups = 0 if kind is RunKind.TRAIN else 2
    return RunSpec(
        run_id=run_id,
        kind=kind,
        domains=tuple(
            DomainShare(domain=name, levels=(), num_groups=num_groups) for name in ("math.tool", "code.repair")
        ),
        split=Split.TRAIN if kind is RunKind.TRAIN else Split.HELDOUT,
        policy=LatestPolicy(run_id="train"),
        group_size=3 if kind is RunKind.TRAIN else 1,
        admission_slots=3,
        min_graded=2,
        retry_budget=1,
        lease_s=LEASE_S,
        seed=1,
        max_off_policy_steps=1,
        temperature=1.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A lease as a worker knows it; it may have been lost without the worker knowing."""

    worker_id: str
    name: AttemptName


class Lifecycle(RuleBasedStateMachine):
    """See the module."""

    @initialize()
    def start(self) -> None:
        self.run_texts: dict[str, str] = {}
        self.group_rows: dict[str, dict[str, object]] = {}
        self.quarantine: list[TaskName] = []
        self.facts: dict[str, tuple[bytes, Fact]] = {}
        self.pool: list[Incoming] = []
        self.held: list[Held] = []
        self.graded: set[AttemptName] = set()
        self.ready: list[str] = []
        self.incarnation = 1
        self.now_s = 0.0
        self.working = WorkingSet(source=SOURCE)
        self.decide(lambda draft: run_rules.create(draft, spec("train", RunKind.TRAIN)))
        self.decide(lambda draft: run_rules.create(draft, spec("eval", RunKind.EVAL)))

    def decide(self, work: Callable[[Draft], object], crash: Crash = Crash.NONE) -> Batch | None:
        """A decision as app.py makes it. None when it was lost."""
        draft = Draft(self.working, self.now_s)
        work(draft)
        batch = draft.batch()
        if crash is Crash.BEFORE_STORING:
            self.rebuild()
            return None
        self.store(batch)
        if crash is Crash.AFTER_STORING:
            self.rebuild()
            return None
        self.working.apply(batch)
        return batch

    def store(self, batch: Batch) -> None:
        for run in batch.runs:
            self.run_texts[run.spec.run_id] = to_text(RUN, run)
        for group in batch.groups:
            assert (group.group_id in batch.new_group_ids) == (group.group_id not in self.group_rows)
            if group.group_id in self.group_rows:
                before = GroupState(str(self.group_rows[group.group_id]["state"]))
                assert group.state is before or group.state in ALLOWED[before]
                self.group_rows[group.group_id].update(changed_group_columns(group))
            else:
                self.group_rows[group.group_id] = dict(new_group_columns(group))
        self.quarantine.extend(batch.quarantined)
        for fact in batch.facts:
            self.publish(fact)

    def publish(self, fact: Fact) -> None:
        """A group becomes ready, closed or dropped once; its own drops come back to the scheduler."""
        key = f"{fact.kind}/{fact.group.group_id}"
        assert key not in self.facts
        self.facts[key] = (to_outgoing(fact).value, fact)
        if fact.kind is FactKind.READY:
            self.ready.append(fact.group.group_id)
        if fact.kind is FactKind.DROPPED and fact.group.drop_reason is not None:
            self.pool.append(
                DroppedByTrainer(group_id=fact.group.group_id, reason=fact.group.drop_reason, detail=fact.group.detail)
            )

    def stored_groups(self) -> list[Group]:
        return [group_of(_row(columns)) for columns in self.group_rows.values()]

    def stored_runs(self) -> list[Run]:
        return [from_text(RUN, text) for text in self.run_texts.values()]

    def rebuild(self) -> None:
        stored = Stored(
            runs=tuple(self.stored_runs()),
            groups=tuple(group for group in self.stored_groups() if not group.state.is_terminal),
            queued=(),
            task_ids=(),
            quarantined=tuple(self.quarantine),
        )
        self.working = WorkingSet.of(stored, SOURCE)
        playing.extend_all(self.working, self.now_s)

    @rule()
    def restart(self) -> None:
        self.rebuild()

    @rule(
        worker_id=st.sampled_from(WORKERS),
        max_rollouts=st.integers(1, 8),
        is_fresh=st.booleans(),
        is_idle=st.booleans(),
        crash=crashes,
    )
    def lease(self, worker_id: str, max_rollouts: int, is_fresh: bool, is_idle: bool, crash: Crash) -> None:
        ask = Ask(worker_id=worker_id, max_rollouts=max_rollouts, loaded=None if is_fresh else LOADED, is_idle=is_idle)
        leased: list[playing.LeasedGroup] = []
        batch = self.decide(lambda draft: leased.extend(playing.lease(draft, ask)), crash)
        given = [
            AttemptName(group_id=item.group.group_id, index=index, attempt=item.group.rollouts[index].attempt)
            for item in leased
            for index in item.indexes
        ]
        assert len(given) <= max_rollouts
        assert len({(name.group_id, name.index) for name in given}) == len(given)
        if batch is not None:
            self.held.extend(Held(worker_id=worker_id, name=name) for name in given)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), crash=crashes)
    def give_back(self, data: st.DataObject, crash: Crash) -> None:
        held = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        cause = data.draw(st.sampled_from([None, *INFRASTRUCTURE]))
        self.decide(lambda draft: playing.give_back(draft, held.worker_id, [held.name], cause), crash)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def renew(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        group = self.working.groups.get(held.name.group_id)
        _, lost = playing.extended(self.working, held.worker_id, [held.name], self.now_s)
        is_current = group is not None and _is_leased(group, held)
        assert lost == ([] if is_current else [held.name])

    @rule(seconds=st.floats(0.1, 15), crash=crashes)
    def wait(self, seconds: float, crash: Crash) -> None:
        self.now_s += seconds
        self.decide(playing.expire, crash)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        """A worker ends an attempt, its own or one it has lost long ago; the verifier answers whenever."""
        held = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        cause = data.draw(st.sampled_from([None, None, None, *INFRASTRUCTURE]))
        self.end(held.name, cause, data.draw(verdicts(held.name)))

    @precondition(lambda self: self.held)
    @rule(crash=crashes)
    def go_well(self, crash: Crash) -> None:
        """Everything held is played and judged without a hitch, so that groups get far often enough."""
        before, self.pool = self.pool, []
        for held in self.held:
            self.end(held.name, None, _verdict(held.name, VerdictStatus.GRADED, passed=held.name.index == 0))
        self.held.clear()
        batch, self.pool = self.pool, before
        if self.decide(lambda draft: results.receive(draft, batch), crash) is None:
            self.pool.extend(batch)

    def end(self, name: AttemptName, cause: Attribution | None, verdict: Verdict) -> None:
        stored = ObjectRef(uri=f"{name.group_id}/{name.index}-{name.attempt}", sha256="00", num_bytes=1)
        member = MemberRecord(
            index=name.index,
            attempt=name.attempt,
            completed=cause is None,
            attribution=cause or Attribution.POLICY,
            num_sampled_tokens=4,
            num_turns=2,
        )
        self.pool.append(Recorded(group_id=name.group_id, members=(member,), object=None if cause else stored))
        if cause is None:
            judged = JudgedMember(verdict=verdict, object=stored)
            self.pool.append(Verified(group_id=name.group_id, members=(judged,)))
            if verdict.status is VerdictStatus.GRADED:
                self.graded.add(name)

    @precondition(lambda self: self.ready)
    @rule(data=st.data())
    def train(self, data: st.DataObject) -> None:
        """The trainer takes a ready group and commits it, or takes it only and crashes later, or finds it stale."""
        group_id = data.draw(st.sampled_from(self.ready))
        version = PolicyVersion(incarnation=self.incarnation, step=data.draw(st.integers(1, 9)))
        deed = data.draw(st.sampled_from(["take", "commit", "drop"]))
        if deed == "drop":
            self.pool.append(DroppedByTrainer(group_id=group_id, reason=DropReason.STALE, detail=""))
            return
        self.pool.append(Taken(group_id=group_id, into=version))
        if deed == "commit":
            self.pool.append(Committed(group_id=group_id, version=version))
            self.ready.remove(group_id)

    @precondition(lambda self: self.group_rows)
    @rule(data=st.data())
    def confuse(self, data: st.DataObject) -> None:
        """A fact of a trainer about a group in whatever state."""
        group_id = data.draw(st.sampled_from(sorted(self.group_rows)))
        version = PolicyVersion(incarnation=self.incarnation, step=1)
        facts: list[Incoming] = [Taken(group_id=group_id, into=version), Committed(group_id=group_id, version=version)]
        self.pool.append(data.draw(st.sampled_from(facts)))

    @rule()
    def restart_trainer(self) -> None:
        self.incarnation += 1

    @precondition(lambda self: self.pool)
    @rule(data=st.data(), repeats=st.booleans(), crash=crashes)
    def deliver(self, data: st.DataObject, repeats: bool, crash: Crash) -> None:
        """Some facts in one batch, in any order. Facts of decisions that were lost come again, as the bus promises."""
        count = data.draw(st.integers(1, min(4, len(self.pool))))
        batch = [self.pool.pop(data.draw(st.integers(0, len(self.pool) - 1))) for _ in range(count)]
        stored = self.decide(lambda draft: results.receive(draft, batch), crash)
        if repeats or stored is None:
            self.pool.extend(batch)

    @rule(run_id=st.sampled_from(["train", "eval"]), cancels=st.booleans(), crash=crashes, is_rare=st.integers(0, 9))
    def close(self, run_id: str, cancels: bool, crash: Crash, is_rare: int) -> None:
        if is_rare == 0:
            self.decide(lambda draft: run_rules.close(draft, run_id, cancels=cancels), crash)

    @invariant()
    def slots_are_never_exceeded(self) -> None:
        for run in self.stored_runs():
            held = [g for g in self.stored_groups() if g.run_id == run.spec.run_id and _holds_slot(g)]
            assert len(held) <= run.spec.admission_slots

    @invariant()
    def counters_equal_what_the_groups_say(self) -> None:
        for run in self.stored_runs():
            groups = [group for group in self.stored_groups() if group.run_id == run.spec.run_id]
            totals = run.totals
            assert (
                run.num_admitted == len(groups) == totals.unfinished + totals.committed + totals.closed + totals.dropped
            )
            assert totals.ready == sum(group.state is GroupState.READY for group in groups)
            assert totals.taken == sum(group.state is GroupState.TAKEN for group in groups)
            assert dict(run.drops).items() == _drops(groups).items()
            assert run.num_trajectories == sum(r.is_recorded for group in groups for r in group.rollouts)
            assert run.num_requeued == sum(r.num_requeued for group in groups for r in group.rollouts)

    @invariant()
    def only_verdicts_on_the_current_attempt_count(self) -> None:
        for group in self.stored_groups():
            for r in group.rollouts:
                name = AttemptName(group_id=group.group_id, index=r.index, attempt=r.attempt)
                assert r.state is not RolloutState.GRADED or name in self.graded

    @invariant()
    def nothing_is_retried_beyond_its_budget(self) -> None:
        for group in self.stored_groups():
            budget = self.working.runs[group.run_id].spec.retry_budget
            assert all(r.num_failures <= budget + (r.state is RolloutState.EXCLUDED) for r in group.rollouts)

    @invariant()
    def no_infrastructure_failure_has_a_reward(self) -> None:
        for _, fact in self.facts.values():
            members = [fact.group.rollouts[index] for index in fact.group.ready_members]
            assert all(r.state is RolloutState.GRADED and r.attribution is Attribution.POLICY for r in members)
            assert (fact.kind is FactKind.READY) <= (len(members) >= 2)
            assert all((r.reward is None) or r.state is RolloutState.GRADED for r in fact.group.rollouts)

    @invariant()
    def memory_is_what_the_ledger_says(self) -> None:
        unfinished = {g.group_id: _timeless(g) for g in self.stored_groups() if not g.state.is_terminal}
        assert {group_id: _timeless(group) for group_id, group in self.working.groups.items()} == unfinished
        assert self.working.runs == {run.spec.run_id: run for run in self.stored_runs()}
        assert set(self.working.waiting) == {group_id for group_id, group in unfinished.items() if group.waiting}

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        for run in self.stored_runs():
            rows = [audit_row_of(_row(c)) for c in self.group_rows.values() if c["run_id"] == run.spec.run_id]
            found = audit(run, rows, self.working.groups.keys())
            assert (found.num_lost_groups, found.num_infra_in_advantages) == (0, 0)

    def teardown(self) -> None:
        """Whatever happened, everything comes to an end once the world behaves."""
        if not hasattr(self, "working"):
            return
        for run_id in ("train", "eval"):
            self.decide(lambda draft, run_id=run_id: run_rules.close(draft, run_id, cancels=False))  # type: ignore[misc]  # default binds the loop variable
        for _ in range(50):
            if not self.working.groups:
                break
            self.behave()
        assert not self.working.groups
        assert {run.state for run in self.stored_runs()} == {RunState.FINISHED}

    def behave(self) -> None:
        self.now_s += 2 * LEASE_S
        self.decide(playing.expire)
        ask = Ask(worker_id="last", max_rollouts=99, loaded=LOADED, is_idle=True)
        leased: list[playing.LeasedGroup] = []
        self.decide(lambda draft: leased.extend(playing.lease(draft, ask)))
        for item in leased:
            for index in item.indexes:
                attempt = item.group.rollouts[index].attempt
                name = AttemptName(group_id=item.group.group_id, index=index, attempt=attempt)
                self.end(name, None, _verdict(name, VerdictStatus.GRADED, passed=index == 0))
        for group_id in list(self.working.groups):
            if self.working.groups[group_id].state in (GroupState.READY, GroupState.TAKEN):
                version = PolicyVersion(incarnation=99, step=1)
                self.pool += [Taken(group_id=group_id, into=version), Committed(group_id=group_id, version=version)]
        batch, self.pool = self.pool, []
        self.decide(lambda draft: results.receive(draft, batch))


def _row(columns: dict[str, object]) -> Row[*tuple[object, ...]]:
    return cast("Row[*tuple[object, ...]]", SimpleNamespace(**columns))


def _is_leased(group: Group, held: Held) -> bool:
    r = group.rollouts[held.name.index]
    is_holder = r.attempt == held.name.attempt and r.worker_id == held.worker_id
    return r.state is RolloutState.LEASED and is_holder


def _holds_slot(group: Group) -> bool:
    return not group.state.is_terminal and group.state is not GroupState.TAKEN


def _drops(groups: list[Group]) -> dict[DropReason, int]:
    reasons = [group.drop_reason for group in groups if group.drop_reason is not None]
    return {reason: reasons.count(reason) for reason in reasons}


def _timeless(group: Group) -> Group:
    return replace(group, rollouts=tuple(replace(r, until_s=0.0) for r in group.rollouts))


def _verdict(name: AttemptName, status: VerdictStatus, *, passed: bool) -> Verdict:
    attribution = {
        VerdictStatus.GRADED: Attribution.POLICY,
        VerdictStatus.BAD_TASK: Attribution.BAD_TASK,
        VerdictStatus.VERIFIER_ERROR: Attribution.VERIFIER,
        VerdictStatus.TIMED_OUT: Attribution.VERIFIER,
    }[status]
    return Verdict(
        index=name.index,
        attempt=name.attempt,
        status=status,
        score=float(passed),
        passed=passed,
        partial=0.0,
        attribution=attribution,
        tier="rule",
        reason="",
        tiers=(),
        num_turns=2,
        num_sampled_tokens=4,
    )


def verdicts(name: AttemptName) -> st.SearchStrategy[Verdict]:
    statuses = [VerdictStatus.GRADED] * 6 + [item for item in VerdictStatus if item is not VerdictStatus.GRADED]
    return st.builds(
        lambda status, passed: _verdict(name, status, passed=passed), st.sampled_from(statuses), st.booleans()
    )


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(
    max_examples=80, stateful_step_count=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
