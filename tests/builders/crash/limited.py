"""A command whose files may not grow beyond a size, or that may not write where modes forbid.

Run by the crash tests::

    python -m tests.builders.crash.limited --bytes 40000 learn --config conclave.toml
    python -m tests.builders.crash.limited --powerless 0 serve --config conclave.toml

The first has what a full disk is to a process that writes; the second gives up the
capabilities of root, to whom the modes of files say nothing.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys

from app.cli import main

CAPABILITY_VERSION = 0x20080522


def limit_files(size: int) -> None:
    """Let the system refuse to write any file beyond a size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def give_up_power() -> None:
    """Give up every capability; a process that is not root has none that matters."""
    library = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    if library.capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    option, size = sys.argv[1:3]
    limit_files(int(size)) if option == "--bytes" else give_up_power()
    sys.argv = ["conclave", *sys.argv[3:]]
    main()
