"""The report's form and what `ok` means."""

import json
from pathlib import Path

import pytest

from benchmarks.report import Metric, compared, unmeasured, write


def test_less_is_better_unless_said() -> None:
    assert compared(3.0, 2.0, unit="s", against="peer", target=1.5).ok is True
    assert compared(3.1, 2.0, unit="s", against="peer", target=1.5).ok is False
    assert Metric(value=0.9, unit="share", target=0.88, higher_is_better=True).ok is True
    assert Metric(value=0.9, unit="share").ok is None


def test_the_ratio_is_judged_where_there_is_a_peer() -> None:
    metric = compared(30.0, 25.0, unit="s", against="peer", target=1.5)
    assert metric.ratio == pytest.approx(1.2)
    assert metric.ok is True


def test_a_missing_figure_is_null_with_a_reason(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    write("demo", {"wall": unmeasured("s", "no server", target=1.5)}, str(target))
    report = json.loads(target.read_text())
    assert report["name"] == "demo"
    assert set(report["machine"]) == {"cpus", "load", "python", "commit"}
    assert report["metrics"]["wall"] == {
        "value": None, "unit": "s", "against": None, "ratio": None, "target": 1.5, "ok": None, "why": "no server",
    }  # fmt: skip


def test_a_reference_of_zero_gives_no_ratio() -> None:
    assert compared(1.0, 0.0, unit="s", against="peer").ratio is None
