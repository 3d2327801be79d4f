"""Generates the Python stubs of proto/ into proto/gen, with the compiler that the dev extra pins.

`python tools/gen_proto.py` writes them; `--check` writes into a temporary folder, compares, and exits 1 on drift.
"""

import argparse
import filecmp
import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "proto"
TARGET = SOURCE / "gen"


def main() -> int:
    """Returns the exit status: 0 when written or equal, 1 on drift or a compiler error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if not parser.parse_args().check:
        shutil.rmtree(TARGET, ignore_errors=True)
        TARGET.mkdir(parents=True)
        return generate(TARGET)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder)
        if generate(fresh):
            return 1
        drifted = differences(fresh, TARGET)
    for path in drifted:
        print(f"proto drift: {path} (run `make proto`)", file=sys.stderr)
    return 1 if drifted else 0


def generate(target: Path) -> int:
    """Compiles every .proto file below proto/jm into `target`; returns the compiler's exit status."""
    files = sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / "jm").rglob("*.proto"))
    include = str(Path(protoc.__file__).parent / "_proto")
    outputs = [f"--{kind}={target}" for kind in ("python_out", "pyi_out", "grpc_python_out")]
    plugin = f"--plugin=protoc-gen-mypy_grpc={Path(sys.executable).parent / 'protoc-gen-mypy_grpc'}"
    status: int = protoc.main(
        ["protoc", f"-I{SOURCE}", f"-I{include}", plugin, f"--mypy_grpc_out={target}", *outputs, *files]
    )
    return status


def differences(fresh: Path, committed: Path) -> list[str]:
    """Relative paths that are missing, superfluous or different in `committed`."""
    names = {
        str(p.relative_to(base))
        for base in (fresh, committed)
        for p in base.rglob("*.py*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    same = {
        n
        for n in names
        if (fresh / n).exists() and (committed / n).exists() and filecmp.cmp(fresh / n, committed / n, shallow=False)
    }
    return sorted(names - same)


if __name__ == "__main__":
    sys.exit(main())
