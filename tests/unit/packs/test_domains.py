"""Every shipped domain: repeatable tasks, pools apart, the oracle always right, everything else wrong, hostile input without a stir."""

import importlib
import json
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from journeyman.boxes.inprocess import InProcessBox, inprocess_box
from journeyman.chat.compact import CALL, render_call
from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.episodes.demonstration import Demonstration, demonstrate, demonstrations, run_now
from journeyman.episodes.episode import Episode
from journeyman.packs.load import load_pack
from journeyman.packs.port import Demonstrator, DomainPack
from journeyman.records import Split, Task, TaskFile, ToolCall, Trajectory
from journeyman.testing.played import played, trajectory_of
from verifier_service.climb import climb
from verifier_service.core.grading import Climb, ClimbState

MODULES = {
    "code.repair": "domains.programming.code_repair",
    "documents.figure": "domains.documents.figure",
    "geometry.mesh": "domains.geometry.mesh",
    "longcontext.retrieval": "domains.longcontext.retrieval",
    "math.tool": "domains.mathematics.math_tool",
    "terminal.shell": "domains.terminal.shell",
}
DEMO_SUCCESS = {
    "code.repair": (0.25, 0.50),
    "documents.figure": (0.28, 0.50),
    "geometry.mesh": (0.38, 0.58),
    "longcontext.retrieval": (0.45, 0.70),
    "math.tool": (0.25, 0.45),
    "terminal.shell": (0.35, 0.80),
}
HOSTILE = ["", " ", "\0", "é" * 9, "9" * 50, "-", "nan", "1e9", "(" * 60, "[]", "None", "../x", "a\nb", "{}", "<|end|>"]


@pytest.fixture(params=sorted(MODULES))
def pack(request: pytest.FixtureRequest) -> DomainPack:
    return load_pack(request.param)


def first_tasks(pack: DomainPack, split: Split, level: int, count: int, seed: int = 0) -> list[Task]:
    return list(islice(pack.tasks(split, level, seed), count))


def judge(pack: DomainPack, trajectory: Trajectory) -> Climb:
    with inprocess_box() as box:
        if pack.spec.uses_box:
            files = [*trajectory.task.files, *trajectory.final_files]
            run_now(box.write_files({file.path: file.content for file in files}))
        return run_now(climb(pack, trajectory, None, box if pack.spec.uses_box else None))


def score(pack: DomainPack, trajectory: Trajectory) -> float:
    judged = judge(pack, trajectory)
    assert judged.state is ClimbState.DECIDED, judged
    assert judged.results[-1].decided
    assert 0.0 <= judged.partial <= 1.0
    return judged.results[-1].score


class Skilled:
    """A pack whose demonstrator makes no mistakes."""

    def __init__(self, pack: DomainPack) -> None:
        self.spec = pack.spec
        self.open_tools = pack.open_tools
        self._player = importlib.import_module(f"{MODULES[pack.spec.name]}.demos").Player

    def demonstrator(self, task: Task, rng: random.Random) -> Demonstrator:
        player: Demonstrator = self._player(task, rng, skill=1.0)
        return player


def solve(pack: DomainPack, task: Task) -> Demonstration:
    return demonstrate(Skilled(pack), task, 0)  # type: ignore[arg-type]  # as much of a pack as a demonstration looks at


def test_tasks_repeat_and_an_id_names_one_task(pack: DomainPack) -> None:
    for level in pack.spec.levels:
        tasks = first_tasks(pack, Split.TRAIN, level, 20, seed=7)
        assert tasks == first_tasks(pack, Split.TRAIN, level, 20, seed=7)
        assert tasks[5] == first_tasks(pack, Split.TRAIN, level, 1, seed=12)[0]
        assert len({task.task_id for task in tasks}) == 20
        assert all(task.domain_ref == pack.ref and task.limits == pack.spec.limits for task in tasks)


def test_train_and_heldout_are_apart(pack: DomainPack) -> None:
    for level in pack.spec.levels:
        train = {task.messages for task in first_tasks(pack, Split.TRAIN, level, 500)}
        heldout = {task.messages for task in first_tasks(pack, Split.HELDOUT, level, 150)}
        assert not train & heldout
        assert len(heldout) >= 60


def test_the_oracle_is_right_within_its_budget(pack: DomainPack) -> None:
    for level in pack.spec.levels:
        for task in first_tasks(pack, Split.HELDOUT, level, 40):
            solution = solve(pack, task)
            assert score(pack, trajectory_of(solution)) == 1.0, solution
            assert len(solution.turns) <= task.limits.max_turns


def test_empty_echoed_and_foreign_answers_are_wrong(pack: DomainPack) -> None:
    tasks = first_tasks(pack, Split.TRAIN, 2, 12)
    solutions = [solve(pack, task) for task in tasks]
    for task, foreign in zip(tasks, [*solutions[1:], solutions[0]], strict=True):
        own = next(solution for solution in solutions if solution.task is task)
        same = (foreign.response, foreign.final_files) == (own.response, own.final_files)
        assert score(pack, played(task, [])) == 0.0
        assert score(pack, played(task, [], response=task.messages[0].content)) == 0.0
        assert score(pack, played(task, [], response="give up", final_files=task.files)) == 0.0
        turns = [(turn.text, turn.call, turn.observation) for turn in foreign.turns]
        transplanted = played(task, turns, response=foreign.response, final_files=foreign.final_files)
        assert same or score(pack, transplanted) == 0.0 or pack.spec.name == "code.repair"


def test_hostile_outcomes_are_judged_without_a_stir(pack: DomainPack) -> None:
    for task in first_tasks(pack, Split.TRAIN, 1, 3):
        for text in HOSTILE:
            calls: list[tuple[str, ToolCall | None, str | None]] = [
                ("", ToolCall(name=tool.name, arguments_json=arguments), None)
                for tool in task.tools
                for arguments in (
                    "",
                    "[]",
                    "{}",
                    '{"expression": [1], "key": null, "vertices": {}}',
                    '{"expression": "(((("}',
                )
            ]
            files = tuple(TaskFile(path=path, content=text.encode() * 3) for path in ("x", *pack.spec.outcome_files))
            assert score(pack, played(task, calls, response=text, final_files=files)) == 0.0


def test_tools_answer_hostile_arguments(pack: DomainPack, tmp_path: Path) -> None:
    task = first_tasks(pack, Split.TRAIN, 1, 1)[0]
    box = InProcessBox(tmp_path) if pack.spec.uses_box else None
    if box is not None:
        run_now(box.write_files({file.path: file.content for file in task.files}))
    session = pack.open_tools(task, box)
    for tool in task.tools:
        for text in HOSTILE:
            arguments = render_arguments(tool.parameters_json, text)
            result = run_now(session.call(ToolCall(name=tool.name, arguments_json=arguments)))
            assert isinstance(result.observation, str)
            assert not result.ends_episode
        assert run_now(session.call(ToolCall(name=tool.name, arguments_json="[]"))).observation


def render_arguments(parameters_json: str, text: str) -> str:
    """Every argument is the text."""
    return json.dumps(dict.fromkeys(json.loads(parameters_json)["properties"], text))


def test_demonstrations_are_imperfect_as_meant_and_repeatable(pack: DomainPack) -> None:
    low, high = DEMO_SUCCESS[pack.spec.name]
    for level in pack.spec.levels:
        made = list(islice(demonstrations(pack, level, 0), 200))
        passed = sum(score(pack, trajectory_of(demonstration)) for demonstration in made) / len(made)
        assert low <= passed <= high, (level, passed)
        assert made[:20] == list(islice(demonstrations(pack, level, 0), 20))
        assert all(len(turn.observation or "") <= 40 for demonstration in made for turn in demonstration.turns)


def test_episodes_are_short(pack: DomainPack) -> None:
    texts = [text for name in sorted(MODULES) for text in load_pack(name).vocabulary_texts()]
    tokenizer = ChatTokenizer.train(texts, 512)
    lengths = []
    for level in pack.spec.levels:
        for demonstration in islice(demonstrations(pack, level, 0), 60):
            ids = tokenizer.encode_prompt(demonstration.messages)
            for turn in demonstration.turns:
                spoken = tokenizer.encode_assistant(turn.text)
                assert len(spoken) <= demonstration.task.limits.max_turn_tokens
                ids += spoken
                ids += tokenizer.encode_observation(turn.observation) if turn.observation is not None else []
            lengths.append(len(ids))
            assert len(ids) <= demonstration.task.limits.max_tokens
    assert sum(lengths) / len(lengths) <= 60


def test_malformed_calls_never_reach_the_tools(pack: DomainPack) -> None:
    task = first_tasks(pack, Split.TRAIN, 1, 1)[0]
    with inprocess_box() as box:
        episode = Episode(pack, task, box if pack.spec.uses_box else None)
        assert run_now(episode.advance(f"{CALL}rm -rf")).observation == "bad call"


def test_perfect_players_speak_the_compact_format(pack: DomainPack) -> None:
    for task in first_tasks(pack, Split.TRAIN, 1, 5):
        for turn in solve(pack, task).turns:
            if turn.call is not None:
                assert render_call(turn.call, task.tools) == turn.text


def changed(trajectory: Trajectory, **files: str) -> Trajectory:
    """The same outcome with some files replaced."""
    kept = {file.path: file.content for file in trajectory.final_files}
    kept.update({path: text.encode() for path, text in files.items()})
    final = tuple(TaskFile(path=path, content=content) for path, content in sorted(kept.items()))
    return replace(trajectory, final_files=final)


@pytest.fixture
def code() -> Iterator[DomainPack]:
    return load_pack("code.repair")


def test_code_shows_the_line_that_the_box_gives(code: DomainPack, tmp_path: Path) -> None:
    for level in code.spec.levels:
        for task in first_tasks(code, Split.TRAIN, level, 40):
            source, line = task.messages[0].content.split("\n")
            session = code.open_tools(task, InProcessBox(tmp_path))
            arguments = {"expression": source.split("return ")[1]}
            call = ToolCall(name="edit", arguments_json=str(arguments).replace("'", '"'))
            assert run_now(session.call(call)).observation == line


@pytest.mark.parametrize(
    "text",
    [
        "def f(x): return __import__('os')",
        "def f(x): return (lambda: x)()",
        "def f(x): return x.__class__",
        "def f(x, y=1): return x",
        "def f(x): return [x][0]",
        "def f(x): return 'a'",
        "def f(x): return True",
        "import os\ndef f(x): return x",
        "def f(x):\n  while True: pass",
        "@f\ndef f(x): return x",
        "async def f(x): return x",
        "def g(x): return x",
        "f = 1",
        "def f(x): return " + "(" * 150,
    ],
)
def test_code_that_is_no_arithmetic_fails_before_it_runs(code: DomainPack, text: str) -> None:
    task = next(task for task in code.tasks(Split.TRAIN, 3, 0) if "f(x)" in task.messages[0].content)
    judged = judge(code, changed(played(task, []), **{"solution.py": text}))
    assert (judged.results[-1].tier, judged.results[-1].score) == ("format", 0.0)


def test_code_unchanged_in_other_words_fails_before_it_runs(code: DomainPack) -> None:
    task = first_tasks(code, Split.TRAIN, 1, 1)[0]
    text = task.files[0].content.decode().replace("return ", "return (").rstrip() + ")  # better\n"
    judged = judge(code, changed(played(task, []), **{"solution.py": text}))
    assert (judged.results[-1].tier, judged.results[-1].score) == ("rule", 0.0)


def test_terminal_refuses_other_changes() -> None:
    shell = load_pack("terminal.shell")
    for task in first_tasks(shell, Split.TRAIN, 2, 10):
        right = trajectory_of(solve(shell, task))
        assert score(shell, right) == 1.0
        for file in right.final_files:
            extra = file.content.decode() + "more=1\n"
            assert score(shell, changed(right, **{file.path: extra})) == 0.0
        assert score(shell, replace(right, final_files=right.final_files[1:])) == 0.0


def test_mesh_refuses_every_other_face() -> None:
    mesh = load_pack("geometry.mesh")
    for level in mesh.spec.levels:
        for task in first_tasks(mesh, Split.TRAIN, level, 4):
            given = task.files[0].content.decode()
            labels = range(1, given.count("v ") + 1)
            faces = [(a, b, c) for a in labels for b in labels for c in labels]
            passed = [
                face
                for face in faces
                if score(mesh, changed(played(task, []), **{"mesh.obj": given + "f {} {} {}\n".format(*face)})) == 1.0
            ]
            assert len(passed) == 3, "one face, named from each of its corners"
            assert len({frozenset(face) for face in passed}) == 1
