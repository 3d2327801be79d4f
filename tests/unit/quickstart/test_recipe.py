"""The recipe: TOML that says everything, mistakes told in one line that names the right key."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import ErrorCode, JourneymanError
from journeyman.quickstart.recipe import SMOKE, ColdStart, Evaluation, Recipe, Reinforcement, read_recipe, to_toml


def refusal(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(JourneymanError) as caught:
        read_recipe(path, Recipe())
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("recipe", [Recipe(), SMOKE, Recipe(seed=7, domains=("math.tool",), model='/tmp/a "b"\\c')])
def test_a_recipe_comes_back_from_its_toml(tmp_path: Path, recipe: Recipe) -> None:
    path = tmp_path / "run.toml"
    path.write_text(to_toml(recipe))
    assert read_recipe(path, Recipe()) == recipe


@given(
    st.builds(
        Recipe,
        seed=st.integers(0, 2**31 - 1),
        domains=st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3).map(tuple),
        cold_start=st.builds(ColdStart, num_steps=st.integers(1, 10**6)),
        rl=st.builds(Reinforcement, learning_rate=st.floats(1e-8, 1.0), max_wait_s=st.floats(0.01, 100)),
        evaluation=st.builds(Evaluation, margin=st.floats(0, 1), temperature=st.floats(0, 5)),
    )
)
def test_any_recipe_comes_back_from_its_toml(tmp_path_factory: pytest.TempPathFactory, recipe: Recipe) -> None:
    path = tmp_path_factory.mktemp("recipe") / "run.toml"
    path.write_text(to_toml(recipe), "utf-8")
    assert read_recipe(path, Recipe()) == recipe


def test_what_a_file_leaves_out_comes_from_the_base(tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[rl]\nnum_steps = 5\n")
    recipe = read_recipe(path, SMOKE)
    assert recipe.rl.num_steps == 5
    assert recipe.rl.group_size == SMOKE.rl.group_size
    assert recipe.evaluation == SMOKE.evaluation


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sed = 1", "unknown key sed; did you mean seed?"),
        ("[rl]\nlerning_rate = 0.1", "unknown key rl.lerning_rate; did you mean rl.learning_rate?"),
        ("[evaluation]\ntask_per_domain = 3", "did you mean evaluation.tasks_per_domain?"),
        ("seed = ", "is not valid TOML"),
        ('seed = "one"', "seed = 'one'"),
        ("[rl]\nnum_steps = 0", "rl.num_steps = 0"),
        ("domains = []", "domains = []"),
        ("rl = 3", "rl = 3"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "recipe.toml"
    message = refusal(path, text)
    assert message.startswith(str(path))
    assert said in message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(JourneymanError, match="No such file"):
        read_recipe(tmp_path / "absent.toml", Recipe())
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(JourneymanError, match="not UTF-8"):
        read_recipe(tmp_path / "binary.toml", Recipe())
