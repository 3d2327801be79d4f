"""Makes this interpreter one as `python -c` would find it in a box. Called by the zygote before it makes any, and by command_init."""

import os
import sys


def forget_origin() -> None:
    """The working folder comes first on the path, and no trace of this source tree is left on it."""
    standard = "_frozen_importlib"
    sys.path[:] = ["", *(path for path in sys.path if os.path.exists(path))]
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "__module__", "").startswith(standard)]
    sys.path_hooks[:] = [
        hook for hook in sys.path_hooks if getattr(hook, "__module__", standard).startswith(("zip", standard))
    ]
    sys.path_importer_cache.clear()
    sys.dont_write_bytecode = True
