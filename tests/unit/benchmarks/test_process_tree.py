"""CPU seconds of a process tree."""

import subprocess
import sys
import time

from benchmarks.process_tree import CpuSample, TreeWatch, cpu_between, program

BURN = "import time\nwhile time.process_time() < 0.6: pass\n"


def test_a_childs_seconds_are_counted_alive_and_after_it_ended() -> None:
    code = f"import subprocess, sys, time; subprocess.run([sys.executable, '-c', {BURN!r}]); time.sleep(0.6)"
    with subprocess.Popen([sys.executable, "-c", code]) as process, TreeWatch(process.pid, "top") as watch:
        process.wait(timeout=60)
    used = [sample.by_program["top"] for sample in watch.samples]
    assert used[-1] >= 0.55
    assert used == sorted(used)


def test_a_service_is_told_apart_by_its_module() -> None:
    assert program(["python", "-m", "rollout_service"]) == "rollout"
    assert program(["python", "-c", "print()"]) is None


def test_between_takes_the_nearest_samples() -> None:
    now = time.time()
    samples = [CpuSample(at=now + i, by_program={"a": 2.0 * i} | ({"b": 1.0} if i > 2 else {})) for i in range(5)]
    assert cpu_between(samples, now + 1.1, now + 3.9) == {"a": 6.0, "b": 1.0}
    assert cpu_between([], now, now) == {}
