"""pandas, from the folder that only the tests with data frames search.

scikit-learn loads pandas wherever it finds it, and a server that learns would start a
third of a second later for it: in the suite, more than a thousand servers do.
"""

from __future__ import annotations

import sys
from pathlib import Path

FRAMES = Path(sys.prefix) / "frames"
"""Where `make install-test` puts what tests/frames/requirements.lock pins."""

if str(FRAMES) not in sys.path:
    sys.path.append(str(FRAMES))

import pandas as pd  # noqa: E402 -- found in the folder above

__all__ = ["FRAMES", "pd"]
