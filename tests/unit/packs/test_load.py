"""Finding packs: shipped ones, a user's folder, and one clear line for everything wrong."""

import shutil
from pathlib import Path

import pytest

import journeyman
from journeyman.errors import ErrorCode, JourneymanError
from journeyman.packs.load import PATH_VARIABLE, folder_digest, list_packs, load_folder, load_pack
from journeyman.records import Split

SHIPPED = Path(journeyman.__file__).parent.parent / "domains"
SIX = ["code.repair", "documents.figure", "geometry.mesh", "longcontext.retrieval", "math.tool", "terminal.shell"]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with a copy of math.tool under another name."""
    folder = tmp_path / "root" / "mine" / "sums"
    shutil.copytree(SHIPPED / "mathematics" / "math_tool", folder, ignore=shutil.ignore_patterns("__pycache__"))
    toml = folder / "domain.toml"
    toml.write_text(toml.read_text().replace("math.tool", "mine.sums"))
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "root"))
    return folder


def test_the_six_are_there() -> None:
    packs = list_packs()
    assert {pack.spec.name for pack in packs} >= set(SIX)
    assert [pack.spec.name for pack in packs] == sorted(pack.spec.name for pack in packs)
    for pack in packs:
        assert pack.ref.startswith(f"{pack.spec.name}@{pack.spec.version}+")


def test_a_folder_of_ones_own_is_found(own: Path) -> None:
    assert load_pack("mine.sums").spec.name == "mine.sums"
    assert load_pack("math.tool").spec.name == "math.tool"


def test_a_name_twice_is_refused(own: Path) -> None:
    toml = own / "domain.toml"
    toml.write_text(toml.read_text().replace("mine.sums", "math.tool"))
    with pytest.raises(JourneymanError, match=r"two packs are named math\.tool"):
        load_pack("math.tool")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(JourneymanError, match=r"did you mean math\.tool") as caught:
        load_pack("math.tools")
    assert caught.value.code is ErrorCode.NOT_FOUND


def test_a_root_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(JourneymanError, match="is not a folder"):
        list_packs()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version = 1", 'version = "one"', "version must be an integer"),
        ("max_turns", "max_turn", r"unknown key limits\.max_turn"),
        ("[reward]", "", "reward must be a table"),
        ('name = "mine.sums"', "name = ", "Invalid value"),
        ('["format", "rule"]', '["rule", "format"]', r"ladder\.py has tiers"),
    ],
)
def test_a_bad_toml_is_one_line(own: Path, old: str, new: str, message: str) -> None:
    toml = own / "domain.toml"
    toml.write_text(toml.read_text().replace(old, new))
    with pytest.raises(JourneymanError, match=message) as caught:
        load_folder(own)
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert "\n" not in caught.value.message.split(": ", 1)[0]


def test_a_missing_module_is_named(own: Path) -> None:
    (own / "ladder.py").unlink()
    with pytest.raises(JourneymanError, match=r"ladder\.py"):
        load_folder(own)


def test_the_digest_covers_every_file(own: Path) -> None:
    before = folder_digest(own)
    (own / "__pycache__").mkdir(exist_ok=True)
    (own / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert folder_digest(own) == before
    (own / "README.md").write_text("other")
    assert folder_digest(own) != before


def test_levels_that_are_not_there_are_refused() -> None:
    with pytest.raises(JourneymanError, match="level 9"):
        load_pack("math.tool").tasks(Split.TRAIN, 9, 0)
