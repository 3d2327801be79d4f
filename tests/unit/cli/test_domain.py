"""`journeyman domain`: lists what is there, shows tasks, refuses what is not there."""

import json

from click.testing import CliRunner

from journeyman.cli.main import main


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["domain", *arguments])
    return result.exit_code, result.output


def test_list_as_json_names_every_domain() -> None:
    code, output = run("list", "--json")
    documents = {document["name"]: document for document in json.loads(output)}
    assert code == 0
    assert documents["code.repair"]["tiers"] == ["format", "rule", "execute"]
    assert documents["math.tool"]["uses_box"] is False
    assert all(document["ref"].startswith(f"{name}@") for name, document in documents.items())


def test_list_is_one_line_a_domain() -> None:
    code, output = run("list")
    assert code == 0
    assert len(output.splitlines()) == len(json.loads(run("list", "--json")[1]))


def test_show_prints_tasks_of_the_level_asked_for() -> None:
    code, output = run("show", "math.tool", "--level", "2", "--count", "2", "--heldout")
    assert code == 0
    assert "tools: calc" in output
    assert output.count("math.tool/heldout/2/") == 2
    assert output == run("show", "math.tool", "--level", "2", "--count", "2", "--heldout")[1]


def test_show_as_json_is_one_task_a_line() -> None:
    code, output = run("show", "math.tool", "--level", "1", "--count", "2", "--json")
    tasks = [json.loads(line) for line in output.splitlines()]
    assert code == 0
    assert [task["task_id"] for task in tasks] == ["math.tool/train/1/0", "math.tool/train/1/1"]
    assert tasks[0]["messages"][0]["role"] == "user"


def test_what_is_not_there_is_one_line_and_exit_code_2() -> None:
    code, output = run("show", "math.tol")
    assert code == 2
    assert output.strip() == "journeyman: no domain 'math.tol'; did you mean math.tool?"
    code, output = run("show", "math.tool", "--level", "9")
    assert code == 2
    assert "has levels [1, 2, 3]" in output
