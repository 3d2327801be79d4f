"""`journeyman trajectory show`: turns for people, tokens for those who look closer, JSON for machines."""

import json
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from journeyman.chat.tokenizer import ChatTokenizer
from journeyman.cli.main import main
from journeyman.packs.load import load_pack
from journeyman.records import Split, ToolCall
from journeyman.testing.played import played
from journeyman.trajectories import encode_group


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["trajectory", "show", *arguments])
    return result.exit_code, result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    task = next(islice(load_pack("math.tool").tasks(Split.TRAIN, 1, 0), 1))
    call = ToolCall(name="calc", arguments_json='{"expression": "2+3"}')
    trajectory = played(task, [("calc 2+3", call, "5"), ("5", None, None)], response="5", group_id="g-1")
    place = tmp_path / "objects" / "trajectories" / "rl" / "g-1"
    place.mkdir(parents=True)
    (place / "0-1-abc.parquet").write_bytes(encode_group([trajectory]))
    return tmp_path


def test_turns_are_shown_with_calls_and_observations(folder: Path) -> None:
    code, output = run(str(folder))
    assert code == 0
    assert "math.tool/train/1/" in output
    assert '| calc 2+3   [calc {"expression": "2+3"}]' in output
    assert "tool | 5" in output
    assert "ended: answered (policy)" in output


def test_tokens_are_numbers_without_and_text_with_a_tokenizer(folder: Path) -> None:
    file = next(folder.glob("**/*.parquet"))
    assert "None" in run(str(file), "--tokens")[1]
    policy = folder / "objects" / "policies" / "rl" / "1.0"
    policy.mkdir(parents=True)
    ChatTokenizer.train(["calc 2+3 5"] * 4, 300).save(policy, max_tokens=64)
    output = run(str(file), "--tokens")[1]
    assert "None" not in output
    assert "policy 1." in output or "policy 0." in output


def test_json_is_one_object_a_line_with_every_sampled_token(folder: Path) -> None:
    code, output = run(str(folder), "--json")
    document = json.loads(output)
    assert code == 0
    assert [turn["text"] for turn in document["turns"]] == ["calc 2+3", "5"]
    assert document["turns"][0]["call"] == {"name": "calc", "arguments": '{"expression": "2+3"}'}
    assert all(set(token) == {"id", "text", "logprob", "version"} for token in document["turns"][0]["tokens"])


def test_nothing_to_show_is_one_line_and_exit_code_2(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    code, output = run(str(folder), "--domain", "code.repair")
    assert code == 2
    assert "no trajectory of code.repair" in output
    assert run(str(tmp_path_factory.mktemp("empty")))[0] == 2
    bad = folder / "bad.parquet"
    bad.write_bytes(b"not parquet")
    assert run(str(bad))[0] == 2
