"""Rules of the house that a machine can check. Each failure says the rule."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from journeyman.settings import ServiceSettings

ROOT = Path(__file__).resolve().parents[2]
SERVICES = ("scheduler", "rollout", "sandbox", "verifier", "trainer", "registry")
FOLDERS = ("journeyman", "domains", "benchmarks", "examples", "tools", *(f"{name}_service" for name in SERVICES))
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
LONG_FILES = 8
"""Files above 300 lines; may only shrink."""
DRAWERS = {"utils", "helpers", "manager", "misc", "common", "base"}


def test_files_stay_readable() -> None:
    lines = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in SOURCES}
    too_long = {
        str(path): count for path, count in lines.items() if count > MAX_FILE_LINES and "examples" not in str(path)
    }
    assert not too_long, f"no file has more than {MAX_FILE_LINES} lines; move the second thing out: {too_long}"
    above = [str(path) for path, count in lines.items() if count > 300]
    assert len(above) <= LONG_FILES, f"rarely above 300 lines; this list may only shrink: {above}"


def test_functions_stay_short() -> None:
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > MAX_FUNCTION_LINES:
                    found.append(f"{path.relative_to(ROOT)}:{node.name} {length}")
    assert not found, f"no function has more than {MAX_FUNCTION_LINES} lines: {found}"


def test_no_drawers() -> None:
    found = [str(path.relative_to(ROOT)) for path in SOURCES if path.stem in DRAWERS]
    assert not found, f"a module is named by what it is, not {sorted(DRAWERS)}: {found}"


def test_modules_say_their_role() -> None:
    found = [
        str(path.relative_to(ROOT))
        for path in SOURCES
        if path.read_text().strip() and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert not found, f"every module begins with a docstring that says its role: {found}"


PROTOS = sorted((ROOT / "proto" / "jm").rglob("*.proto"))
NEEDS_COMMENT = re.compile(
    r"^\s+(?:repeated |optional )?[\w.]+ \w+ = \d+;|^\s+\w+ = \d+;|^\s*rpc \w+|^(?:message|enum|service) \w+"
)


@pytest.mark.parametrize("path", PROTOS, ids=lambda path: path.stem)
def test_every_field_of_the_contract_is_commented(path: Path) -> None:
    lines = path.read_text().splitlines()
    bare = [
        f"{number + 1}: {line.strip()}"
        for number, line in enumerate(lines)
        if NEEDS_COMMENT.match(line) and not lines[number - 1].strip().startswith("//")
    ]
    assert not bare, f"meaning, unit, range, what absence means: {bare}"


@pytest.mark.parametrize("service", ["scheduler", "sandbox", "verifier", "registry"])
def test_services_that_compute_nothing_load_no_torch(service: str) -> None:
    code = (
        f"import {service}_service.__main__, sys;"
        "print([m for m in ('torch', 'transformers', 'numpy', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    heavy = ast.literal_eval(done.stdout)
    assert "torch" not in heavy
    assert "transformers" not in heavy


@pytest.mark.parametrize("service", ["rollout", "trainer"])
def test_no_service_imports_transformers_at_start(service: str) -> None:
    code = f"import {service}_service.__main__, sys; print('transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "False", done.stderr


COMMON = {"listen", "metrics_listen", "log_file", "bus", "objects"}
SETTINGS: dict[str, set[str]] = {
    "scheduler": {"ledger", "lease_wait_s", "tick_s"},
    "trainer": {"sft_threads", "rl_threads"},
    "registry": {"ledger", "scheduler", "admission_slots", "retry_budget", "lease_s"},
}
"""Adding a knob is a visible act: it is added here too."""
MAX_SETTINGS = 19


@pytest.mark.parametrize("service", SERVICES)
def test_settings_are_few_and_added_on_purpose(service: str) -> None:
    module = importlib.import_module(f"{service}_service.settings")
    (settings,) = [
        found
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, ServiceSettings) and found is not ServiceSettings
    ]
    names = set(settings.model_fields) - COMMON
    if service in SETTINGS:
        assert names == SETTINGS[service]
    assert len(names | COMMON) <= MAX_SETTINGS, f"at most {MAX_SETTINGS} settings a service: {sorted(names)}"
