"""A web server with scripted noise, which prints its port once it is open.

Run by ``over_a_socket``::

    python -m tests.lives.served CONFIG SEED
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.lives.application import serve_on_a_socket
from tests.lives.script import scripted


def main() -> None:
    """Serve until a signal."""
    config, seed = sys.argv[1:]
    with scripted(seed):
        serve_on_a_socket(Path(config), {}, announce)
    os._exit(0)


def announce(port: int) -> None:
    """Tell the port."""
    print(port, flush=True)  # noqa: T201 -- what is waited for


if __name__ == "__main__":
    main()
