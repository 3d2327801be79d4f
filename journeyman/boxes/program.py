"""Runs Python source as a program inside this interpreter, as `python -c` would but with source lines in tracebacks.

Called by the in-process box and, inside every sandbox box, by the forked child that becomes the program; so both give the same bytes.
Imports only what is cheap: box interpreters load it before they shut themselves in.
"""

import linecache
import sys
import traceback
from collections.abc import Sequence
from types import CodeType, ModuleType

FILE_NAME = "<program>"
"""How the source is called in tracebacks."""
WORK_FOLDER = "/box"
"""The working folder of every box."""
OUTPUT_BYTES = 64 * 1024
"""Bytes kept of each of stdout and stderr where nothing else is said."""


def compile_program(source: str) -> CodeType:
    """Compiles source; SyntaxError or ValueError where it is not Python."""
    return compile(source, FILE_NAME, "exec", dont_inherit=True)


def run_program(source: str, argv: Sequence[str], code: CodeType | None = None) -> tuple[int, BaseException | None]:
    """Runs source as __main__ with sys.argv[1:] = argv on the present sys.stdout and sys.stderr.

    Gives the exit code python would give and the exception that ended it, None or SystemExit where it ended by itself. code: the source
    compiled already.
    """
    module = ModuleType("__main__")
    linecache.cache[FILE_NAME] = (len(source), None, source.splitlines(keepends=True), FILE_NAME)
    sys.modules["__main__"] = module
    sys.argv = ["-c", *argv]
    try:
        exec(code if code is not None else compile_program(source), module.__dict__)
    except SystemExit as request:
        return _exit_code(request), request
    except BaseException as error:  # whatever ends the program is its result, not ours
        _print_error(error)
        return 1, error
    return 0, None


def _exit_code(request: SystemExit) -> int:
    if request.code is None:
        return 0
    if isinstance(request.code, int):
        return request.code & 0xFF
    print(request.code, file=sys.stderr)  # noqa: T201  # what python does with sys.exit("text")
    return 1


def _print_error(error: BaseException) -> None:
    """Prints the traceback without the frames of this module."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace, file=sys.stderr)
