"""What every test may use: the public data sets, and the rule that CI skips nothing.

Chance and time: tests draw real noise where the claim is about it, and a test that is right
may then fail.  Each one derives how often beside what it asserts, and the sum over a run of
`make test` is below one in a thousand: 6e-5 for the releases of ``tests/http/end_to_end``,
which check it themselves (``chances.py``), 1e-5 for scores, 2e-5 for audits at a false alarm
of 10^-6 each, 1e-7 for laws and comparisons of times at 10^-9 each; what is left are a few
shares of right labels, which lie four and more of their deviations above what is asked.
Everything else that is random has a fixed seed.  Nothing is asserted of a single wall-clock
time that is not several times what a busy machine takes.
"""

from __future__ import annotations

import gc
import os

# As the command line sets it before numpy loads: draws have threads of their own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from _pytest.reports import CollectReport, TestReport

# What is collected stays: a search for garbage in it finds nothing, and takes its time again at
# every later one.  On again once every test is known.
gc.disable()

ROOT = Path(__file__).parents[1]
SLOW_FILES = ROOT / "tests" / "slow.txt"
# What `make check` runs but for its slow files.
QUICK_FOLDERS = ("unit", "conformance", "property", "tidy")

# The examples of a commit are the same on every machine: a failure in CI is a
# failure at the desk.  A shared machine is slow at times, so no deadline.
settings.register_profile("conclave", deadline=None, derandomize=True)
settings.load_profile("conclave")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow files, which ``make check`` leaves out, and let the longest begin.

    Whatever comes last is short then, and no process waits long for the others.
    """
    slow = {ROOT / "tests" / name for name in SLOW_FILES.read_text(encoding="utf-8").split()}
    for item in items:
        if item.path in slow:
            item.add_marker("slow")
    quick = [ROOT / "tests" / folder for folder in QUICK_FOLDERS]

    @cache
    def rank(path: Path) -> int:
        """Rank folders of servers, browsers and audits before slow files, and those before all."""
        if not any(folder in path.parents for folder in quick):
            return 0
        return 1 if path in slow else 2

    items.sort(key=lambda item: rank(item.path))


def pytest_collection_finish() -> None:
    """Keep what was imported and collected from every later search for garbage."""
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers() -> int:
    """Return three processes for two cores: one in three waits for a server or a disk."""
    return (os.cpu_count() or 1) * 3 // 2


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that turns a skip into a failure; CI=true sets it."""
    parser.addoption(
        "--fail-on-skip",
        action="store_true",
        default=os.environ.get("CI", "") == "true",
        help="count a test that was skipped, for whatever reason, as failed",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, TestReport, TestReport]:
    """Turn the skip of one test into a failure where nothing may be skipped."""
    report = yield
    _refuse_skip(report, item.config)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, CollectReport, CollectReport]:
    """Turn the skip of a whole module into a failure where nothing may be skipped."""
    report = yield
    _refuse_skip(report, collector.config)
    return report


def _refuse_skip(report: TestReport | CollectReport, config: pytest.Config) -> None:
    """Fail a report that says skipped; an expected failure is none."""
    if report.skipped and not hasattr(report, "wasxfail") and config.getoption("--fail-on-skip"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped: {report.longreprtext}"


@pytest.fixture(autouse=True)
def _logs_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no test leave another its logs: a command that runs in this process configures them.

    A logger that is kept after its first use would go on with what it found then.
    """
    before, configure = structlog.get_config(), structlog.configure

    def configure_unkept(**changes: Any) -> None:
        configure(**(changes | {"cache_logger_on_first_use": False}))

    monkeypatch.setattr(structlog, "configure", configure_unkept)
    yield
    configure(**before)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the public data sets, or skip where it is absent.

    CONCLAVE_TEST_DATA names it; without, it is ``../shared/data`` beside the
    repository.
    """
    named = os.environ.get("CONCLAVE_TEST_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; name their folder in CONCLAVE_TEST_DATA")
    return folder
