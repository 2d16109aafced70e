"""The place where all parts are built from the settings: ledger, release, service, application.

No other module connects these parts; all others get the parts that they need as arguments. The
service is the object that answers queries while a release is open.

A growing release is one to which records are added in batches (generations). The models of a
generation vote on queries from a scheduled moment (tick) on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from app.answering.answer_query import CONTAINED, Observer, QueryAnswerer, observe_nothing
from app.answering.generations.generations_answerer import LivingAnswerer
from app.answering.replicas.forwarding import Forwarding
from app.answering.service import ConclaveService
from app.answering.service_slot import ServiceSlot
from app.answering.worker_thread import in_daemon_thread
from app.errors import (
    ConclaveError,
    ConfigurationError,
    ContainedError,
    LedgerUnavailableError,
    MachineError,
    UnavailableError,
)
from app.http.access.access_control import Access, require_safe_binding
from app.http.access.keys import KeyRing, WatchedKeys
from app.http.access.tokens import tokens_of
from app.http.application import create_application
from app.http.dashboard.page import page_responses
from app.http.limits import limits_of
from app.http.monitoring.monitoring_options import Watching, watching_of
from app.http.monitoring.tracing import observing
from app.learning.chunks import made_by_machine
from app.ledger.database.database import is_shared, turn_to_open
from app.ledger.database.sqlite import database_path
from app.ledger.entries.digests import SECRET_BYTES, Digests
from app.ledger.entries.fold import EMPTY
from app.ledger.head.head_file import head_file_of
from app.ledger.head.rollback import check_expected_head, check_no_ledger, keep_newest
from app.ledger.ledger import open_ledger
from app.ledger.server_lock import take_server_lock
from app.noise.system import SystemNoise
from app.planning.from_settings import (
    advising,
    warn_if_infeasible,
    warn_of_cells,
    warn_of_relabelled_scores,
)
from app.release.classifier.publish_at_once import (
    LEARNS_BY_ITSELF,
    check_first_classifier,
    check_learnable,
    learn,
)
from app.release.classifier.switch import switch_phase
from app.release.composed_budget import warn_of_others
from app.release.drawing import read_points, read_private_rows
from app.release.generations.appending import Appended, append_generation, refuse_append
from app.release.generations.generations_opening import open_living, refuse_living
from app.release.generations.generations_release import LivingRelease
from app.release.generations.tick import Ticker
from app.release.generations.waiting_requests import (
    Receipt,
    corrections_of,
    erasures_of,
    refuse_changes,
    take_down,
)
from app.release.opening import found_state, open_release, refuse_before_ledger
from app.release.progress import Progress, no_progress
from app.release.release import warn_if_ended
from app.release.statistics.opening_table import (
    OPEN_ALREADY,
    check_first_table,
    check_openable,
    open_at_once,
    open_statistics,
)
from app.release.statistics.posted_hypotheses import parse_hypotheses
from app.release.statistics.released_table import released_table
from app.release.streaming import (
    closing_where_it_fails,
    held_in_memory,
    new_rows,
    rows_beside,
    rows_of,
)
from app.release.terms.answer_time_padding import padding_seconds
from app.release.terms.configuration import configure
from app.release.terms.hopeless_release import warn_if_hopeless
from app.release.views.budget import generations_view
from app.settings.addresses import is_loopback
from app.settings.learning_sections import JOBS_UNUSED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from fractions import Fraction
    from pathlib import Path

    import numpy as np
    from fastapi import FastAPI
    from numpy.typing import NDArray

    from app.data.rows import PrivateRows
    from app.data.streaming.streamed_rows import StreamedRows
    from app.http.application import ConclaveApplication
    from app.http.protocols.v2_grpc.inference_server import InferenceServer
    from app.ledger.head.head_file import HeadFile
    from app.ledger.ledger import Ledger
    from app.noise.source import NoiseSource
    from app.release.classifier.published_classifier import PublishedClassifier
    from app.release.release import Release
    from app.release.statistics.released_table import StatisticsAnswer
    from app.release.terms.configuration import Configuration
    from app.settings.settings import Settings

CLOSE_SECONDS_MAX: Final = 8.0
NO_GRPC: Final = "needs the extra `grpc`, which is not installed; install it, or remove the setting"


def _ignore(line: str) -> None:
    del line


@dataclass(slots=True)
class Server:
    """One server process: its application, and the error that ended it.

    Attributes:
        settings: the whole configuration.
        progress: receives the stages of opening the release.
        warn: a function that is called with each warning for the operator about an opening release.
        observe: a function that is called before and after every step of a query; crash tests end
            the process in it.
        expect_head: a hash of a ledger entry, recorded elsewhere, that must be in the ledger's
            chain of hashes.
        even_if_hopeless: whether to open even a release that will give almost no stable answers;
            the ledger records this choice.
        on_failure: a function that is called on the event loop if the release cannot open.
        on_open: a function that is called on the event loop once the release is open.
        clock: a function that returns the seconds since 1970, by which ticks are scheduled.
        slot: the container of the service; empty until the release is open.
        failure: the error because of which the release could not open; None without one.
        watching: the options by which requests are recorded for operators.
        inference: the gRPC server of the same service; None without a gRPC port.

    """

    settings: Settings
    progress: Progress = no_progress
    warn: Callable[[str], None] = _ignore
    observe: Observer = observe_nothing
    on_failure: Callable[[], None] = lambda: None
    on_open: Callable[[], None] = lambda: None
    expect_head: str | None = None
    even_if_hopeless: bool = False
    clock: Callable[[], float] = time.time
    slot: ServiceSlot = field(default_factory=ServiceSlot)
    failure: ConclaveError | None = None
    inference: InferenceServer | None = None
    _keys: WatchedKeys | None = None
    watching: Watching = field(default_factory=Watching)
    _held: ExitStack = field(default_factory=ExitStack)

    def application(self) -> ConclaveApplication:
        """Return the web application, which opens the release when it is served.

        Raises:
            ConfigurationError: the server may not listen on this address, or its API keys or a
                required library are missing.

        """
        server = self.settings.server
        self.watching = watching_of(self.settings, SystemNoise().secret)
        require_safe_binding(self.settings, is_demo=self.settings.is_embedded_demo)
        self._keys = None if server.keys_file is None else WatchedKeys(server.keys_file)
        tokens = tokens_of(server.oidc, self._subject_name)
        # Whoever takes tokens lets nobody in without one, or a key.
        keys = self._keys or (None if tokens is None else KeyRing(()))
        access = Access(keys, keys is None and is_loopback(server.host), tokens)
        application = create_application(
            self.slot,
            access,
            limits=limits_of(self.settings),
            pages=page_responses(),
            lifespan=self._lifespan,
            observe=self.observe,
            watching=self.watching,
        )
        if server.grpc_port is not None:
            self.inference = _inference_server(application, access)
        return application

    def _subject_name(self, subject: str) -> str:
        """Return the name of a token's subject; raises while no release is open."""
        return self.slot.service.subject_name(subject)

    @asynccontextmanager
    async def _lifespan(self, application: FastAPI) -> AsyncIterator[None]:
        """Open beside serving, so that probes answer while the release opens."""
        del application
        opening = asyncio.create_task(self._open_and_serve())
        draining = asyncio.create_task(self._drain(opening))
        watching = asyncio.create_task(self._watch_keys())
        try:
            yield
        finally:
            self.slot.drain()
            await _close(opening)
            draining.cancel()
            watching.cancel()
            await asyncio.to_thread(self._held.close)
            if self.watching.tracing is not None:
                await asyncio.to_thread(self.watching.tracing.close)

    async def _watch_keys(self) -> None:
        """Follow the file of keys for as long as the server runs."""
        if self._keys is not None:
            interval = self.settings.server.keys_reload_seconds
            await self._keys.watch(interval_seconds=interval)

    async def _drain(self, opening: asyncio.Task[ConclaveService | None]) -> None:
        """Take no more queries as soon as the process is asked to end."""
        await self.slot.drained()
        service = opening.result() if opening.done() else None
        if service is not None:
            service.drain()

    async def _open_and_serve(self) -> ConclaveService | None:
        noise = SystemNoise()
        try:
            answerer = await in_daemon_thread(lambda: self._open(noise))
        except Exception as error:  # noqa: BLE001 -- containment: whatever it says may be private
            self.failure = error if isinstance(error, ConclaveError) else _contained(error)
            self.on_failure()
            return None
        release = answerer.release
        service = ConclaveService(
            answerer,
            switch=lambda: switch_phase(release, noise),
            open_statistics=lambda: open_statistics(release, noise),
            on_stop=self.slot.stop,
            pending_queries_max=self.settings.server.pending_queries_max,
            ticker=ticker_of(release, noise, self.clock),
            wall_clock=self.clock,
            forwarding=forwarding_of(answerer, noise),
        )
        service.start()
        self.slot.fill(service)
        self.on_open()
        return service

    def _open(self, noise: NoiseSource) -> QueryAnswerer:
        """Open the release, as the only server of a ledger in SQLite until it is closed."""
        url, name = self.settings.ledger_url, self.settings.release.name
        before = None
        if self.expect_head is None:
            configuration = configure(self.settings, even_if_hopeless=self.even_if_hopeless)
            before = _rows_before_opening(configuration, noise, self.progress)
        with ExitStack() as held:
            held.callback(take_server_lock(url).release)
            with turn_to_open(url, name):
                release = open_from_settings(
                    self.settings,
                    noise=noise,
                    progress=self.progress,
                    warn=self.warn,
                    expect_head=self.expect_head,
                    even_if_hopeless=self.even_if_hopeless,
                    before=before,
                    clock=self.clock,
                )
            held.callback(release.ledger.close)
            with suppress(UnavailableError):  # without it, only the next start is slower
                release.ledger.keep_checkpoint()
            constant = padding_seconds(self.settings, release.ensemble_size)
            observe = observing(self.observe, self.watching.tracing)
            kind = LivingAnswerer if isinstance(release, LivingRelease) else QueryAnswerer
            answerer = kind(release, noise, observe, padding_seconds=constant)
            self._held.push(held.pop_all())
        return answerer


def _inference_server(application: ConclaveApplication, access: Access) -> InferenceServer:
    """Return the server of gRPC, whose library is an extra's.

    Raises:
        ConfigurationError: it is not installed.

    """
    try:
        from app.http.protocols.v2_grpc.inference_server import (  # noqa: PLC0415 -- an extra's
            InferenceServer,
        )
    except ImportError:
        raise ConfigurationError("server.grpc_port", NO_GRPC) from None
    return InferenceServer(application.api, access)


def open_from_settings(
    settings: Settings,
    *,
    noise: NoiseSource,
    progress: Progress = no_progress,
    warn: Callable[[str], None] = _ignore,
    expect_head: str | None = None,
    even_if_hopeless: bool = False,
    before: RowsBefore | None = None,
    clock: Callable[[], float] = time.time,
) -> Release:
    """Return the release that ``settings`` describe, opened or continued without a server.

    Args:
        settings: the whole configuration.
        noise: the source of randomness.
        progress: receives the stages of the opening.
        warn: a function that is called with each warning for the operator.
        expect_head: a hash of an entry that must be in the ledger's chain of hashes; None for no
            check.
        even_if_hopeless: whether to open even a release that will give almost no stable answers;
            the ledger records this choice.
        before: the private rows, and the ledger's future secret, if the rows were read before the
            ledger existed; None otherwise.
        clock: a function that returns the seconds since 1970, by which ticks are scheduled.

    Raises:
        ConfigurationError: the configuration or the data is invalid, or the ledger belongs to
            another release.
        IntegrityError: the ledger was altered.
        ContainedError: an unexpected failure; the error's text is fixed.

    """
    configuration = configure(settings, even_if_hopeless=even_if_hopeless)
    secret = None if before is None else before.secret
    with _opened_ledger(settings, noise, warn, expect_head, secret) as ledger:
        opened = found_state(configuration, ledger).release
        known = before is not None and before.secret == ledger.database_secret()
        if settings.generations is not None:
            return _opened_living(
                configuration,
                ledger,
                rows=held_in_memory(before.rows) if before is not None and known else None,
                noise=noise,
                progress=progress,
                warn=warn,
                clock=clock,
            )
        if before is not None and known:
            rows = before.rows
        else:
            rows = rows_of(configuration, progress, ledger=ledger)
        with closing_where_it_fails(rows):
            release = open_release(
                configuration, ledger=ledger, rows=rows, noise=noise, progress=progress
            )
        if opened is None:
            warn_if_infeasible(settings, rows.count, warn)
            warn_of_cells(settings, rows.count, warn)
            warn_of_relabelled_scores(settings, warn)
            warn_of_others(ledger.openings, warn)
        warn_if_hopeless(release.state.release, warn)
        warn_if_ended(release, warn)
        if settings.learner.jobs is not None:
            warn(JOBS_UNUSED)
    return release


def _opened_living(
    configuration: Configuration,
    ledger: Ledger,
    *,
    rows: PrivateRows | None,
    noise: NoiseSource,
    progress: Progress,
    warn: Callable[[str], None],
    clock: Callable[[], float],
) -> LivingRelease:
    """Open or continue a release that takes generations; its source is read for a new one only."""
    release = open_living(
        configuration,
        ledger=ledger,
        rows=lambda: (
            rows
            or read_private_rows(
                configuration.settings, progress, person_key=ledger.digests.person_key()
            )
        ),
        noise=noise,
        progress=progress,
        ticker=Ticker(configuration, ledger, noise, clock),
        warn=warn,
    )
    warn_of_others(ledger.openings, warn)
    warn_if_hopeless(release.state.release, warn)
    warn_if_ended(release, warn)
    return release


def ticker_of(release: Release, noise: NoiseSource, clock: Callable[[], float]) -> Ticker | None:
    """Return the object that makes a growing release's updates at ticks; None if it cannot grow."""
    if not isinstance(release, LivingRelease):
        return None
    return Ticker(release.configuration, release.ledger, noise, clock, release.waiting)


def forwarding_of(answerer: QueryAnswerer, noise: NoiseSource) -> Forwarding | None:
    """Return the object that sends queries to the leader, one server that commits for all servers.

    The result is None if every server of the ledger answers its own queries. A growing release has
    no leader, because the generations that vote may change in the middle of a batch of queries.
    """
    if isinstance(answerer, LivingAnswerer):
        return None
    messages = answerer.release.ledger.messages(noise)
    return None if messages is None else Forwarding(answerer, messages)


def append_from_settings(
    settings: Settings,
    source: str,
    *,
    noise: NoiseSource,
    progress: Progress = no_progress,
    warn: Callable[[str], None] = _ignore,
    clock: Callable[[], float] = time.time,
    budget: tuple[Fraction | None, Fraction | None] = (None, None),
) -> Appended:
    """Add a generation to a growing release; return its number and counts of persons.

    The counted persons are those whose new rows join their earlier rows, and those whose new rows
    are not used.

    Args:
        settings: the whole configuration.
        source: the path or address of the rows, in the form of the setting ``data.source``.
        noise: the source of randomness, which permutes the rows.
        progress: receives the stages of reading the rows.
        warn: a function that is called with each warning for the operator.
        clock: a function that returns the seconds since 1970, by which ticks are scheduled.
        budget: the epsilon and delta of the added records; None to use those of the release.

    Raises:
        ConfigurationError: a row does not fit the schema, or the release accepts no further rows;
            nothing is appended or charged.
        VerificationError: the release has ended.
        IntegrityError: the ledger was altered.
        ContainedError: an unexpected failure; the error's text is fixed.

    """
    configuration = configure(settings)
    url = settings.ledger_url
    if not is_shared(url) and not database_path(url).exists():
        refuse_append(EMPTY)  # before a file is made
    with _opened_ledger(settings, noise, warn) as ledger:
        refuse_append(found_state(configuration, ledger))
        rows = read_private_rows(
            settings.with_source(source), progress, person_key=ledger.digests.person_key()
        )
        ticker = Ticker(configuration, ledger, noise, clock)
        epsilon, delta = budget
        appended = append_generation(
            configuration,
            ledger=ledger,
            rows=rows,
            noise=noise,
            period=ticker.period,
            budget=(
                configuration.epsilon if epsilon is None else epsilon,
                configuration.delta if delta is None else delta,
            ),
        )
    ledger.close()
    return appended


def change_from_settings(
    settings: Settings,
    *,
    identifiers: Sequence[str] = (),
    source: str | None = None,
    now: bool = False,
    noise: NoiseSource,
    progress: Progress = no_progress,
    warn: Callable[[str], None] = _ignore,
    clock: Callable[[], float] = time.time,
) -> Receipt:
    """Erase records or persons by identifier, or correct them, at the next scheduled update.

    Args:
        settings: the whole configuration.
        identifiers: the identifiers of the records or persons to erase, if no source is given.
        source: the path of corrected rows with identifiers, which replace the records with the same
            identifiers.
        now: whether to make the scheduled update (tick) at once.
        noise: the source of randomness, used if models must be trained for an update made at once.
        progress: receives the stages of reading the rows.
        warn: a function that is called with each warning for the operator.
        clock: a function that returns the seconds since 1970.

    Raises:
        ConfigurationError: a row does not fit the schema, or the release does not keep its rows for
            changes; nothing changes.
        VerificationError: the release has ended.
        IntegrityError: the ledger was altered.

    """
    configuration = configure(settings)
    with _opened_ledger(settings, noise, warn) as ledger:
        found_state(configuration, ledger)
        refuse_changes(configuration, ledger, corrects=source is not None)
        if source is None:
            changes = erasures_of(ledger, identifiers)
        else:
            key = ledger.digests.person_key()
            rows = read_private_rows(settings.with_source(source), progress, person_key=key)
            changes = corrections_of(rows)
        taken = take_down(ledger, changes)
        head = ledger.read_state().head
        receipt = Receipt(taken, before=head, after=None)
        if now:  # nobody known, too: whether a tick comes must not tell who is
            with suppress(LedgerUnavailableError):  # then it is done at the next tick
                before, after = Ticker(configuration, ledger, noise, clock).change_now()
                receipt = Receipt(taken, before=before, after=after)
    ledger.close()
    return receipt


def generations_from_settings(settings: Settings) -> list[dict[str, object]]:
    """Return each generation in the form of ``GET /budget``; none if the release cannot grow.

    Args:
        settings: the whole configuration.

    Raises:
        ConfigurationError: there is no ledger, or it belongs to another release.
        IntegrityError: the ledger was altered.

    """
    name = settings.release.name
    ledger = open_ledger(settings.ledger_url, create=False, name=name)
    try:
        state = found_state(configure(settings), ledger)
        return [each.model_dump() for each in generations_view(settings, state)]
    finally:
        ledger.close()


@dataclass(frozen=True, slots=True)
class RowsBefore:
    """The private rows read before a ledger exists, and the secret that hashes them.

    Attributes:
        rows: the private rows; secret.
        secret: the future secret of the ledger's database, 32 bytes, with which identifiers of rows
            are hashed.

    """

    rows: PrivateRows | StreamedRows = field(repr=False)
    secret: bytes = field(repr=False)


def _rows_before_opening(
    configuration: Configuration, noise: NoiseSource, progress: Progress
) -> RowsBefore | None:
    """Read the rows of a new ledger, and refuse them, before its file is made.

    Args:
        configuration: the new release's.
        noise: where the secret of its database comes from.
        progress: shows how far it has come.

    Returns:
        The rows, and the secret by which they are known; None where there is a ledger.

    Raises:
        ConfigurationError: bad configuration or data.

    """
    if not _is_to_be_made(configuration.settings):
        return None
    with advising(configuration.settings):
        secret = noise.secret(SECRET_BYTES)
        rows = new_rows(configuration, progress, digests=Digests(secret))
        with closing_where_it_fails(rows):
            if configuration.settings.generations is None:
                refuse_before_ledger(configuration, rows, progress)
            else:
                refuse_living(configuration, held_in_memory(rows), progress)
    return RowsBefore(rows, secret)


def _rows_before_ledger(
    configuration: Configuration,
    points: NDArray[np.float64],
    noise: NoiseSource,
    progress: Progress,
    check: Callable[[int], object],
    tell: Callable[[str], None],
) -> RowsBefore | None:
    """Read the rows of a new ledger for a draw, and refuse them, before its file is made.

    Args:
        configuration: the new release's.
        points: encoded public points, float64 (m, d); m may be 0.
        noise: where the secret of its database comes from.
        progress: shows how far it has come.
        check: raises where a draw that the command asks for is impossible on so many rows.
        tell: told how many of the points equal a row.

    Returns:
        The rows, and the secret by which they are known; None where there is a ledger, or
        where rows of persons or with identifiers are read again under its secret.

    Raises:
        ConfigurationError: bad configuration or data.

    """
    settings = configuration.settings
    if not _is_to_be_made(settings):
        return None
    is_read_again = bool(settings.data.person or settings.data.id)
    with advising(settings):
        if is_read_again:
            secret, rows = b"", rows_beside(points, read_private_rows(settings, progress), tell)
        else:
            secret = noise.secret(SECRET_BYTES)
            read = new_rows(configuration, progress, digests=Digests(secret))
            rows = rows_beside(points, read, tell)
        with closing_where_it_fails(rows):
            if settings.generations is None:
                refuse_before_ledger(configuration, rows, progress)
            else:
                refuse_living(configuration, held_in_memory(rows), progress)
            check(rows.count)
    return None if is_read_again else RowsBefore(rows, secret)


def _rows_to_draw(
    configuration: Configuration,
    points: NDArray[np.float64],
    before: RowsBefore | None,
    ledger: Ledger,
    progress: Progress,
    tell: Callable[[str], None],
) -> PrivateRows | StreamedRows:
    """Return the rows that were read before the ledger was made, or read them for it."""
    if before is not None and before.secret == ledger.database_secret():
        return before.rows
    return rows_beside(points, rows_of(configuration, progress, ledger=ledger), tell)


def _rows_beside_points(
    configuration: Configuration,
    public_values: NDArray[np.float64],
    noise: NoiseSource,
    progress: Progress,
    tell: Callable[[str], None],
    check: Callable[..., object],
) -> RowsBefore | None:
    """Return the rows for a draw on public points; as :func:`_rows_before_ledger` does.

    Args:
        configuration: the new release's.
        public_values: the points, encoded.
        noise: where the secret of the ledger's database comes from.
        progress: shows how far it has come.
        tell: told how many points equal a row.
        check: raises where the draw is impossible on so many rows.

    """
    is_told_later = bool(configuration.settings.data.person)  # rows of persons are read again
    return _rows_before_ledger(
        configuration,
        public_values,
        noise,
        progress,
        lambda count: check(configuration, public_values, row_count=count),
        _ignore if is_told_later else tell,
    )


def _is_to_be_made(settings: Settings) -> bool:
    """Return whether a ledger's file is not there yet.

    Raises:
        ConfigurationError: it is not there, and its head file says that it was.

    """
    if is_shared(settings.ledger_url) or database_path(settings.ledger_url).exists():
        return False
    head_file = head_file_of(settings.ledger_url, settings.ledger.head_file)
    if head_file is not None:
        check_no_ledger(settings.ledger_url, head_file)
    return True


def learn_from_settings(
    settings: Settings,
    *,
    public: Path | None,
    noise: NoiseSource,
    progress: Progress = no_progress,
    tell: Callable[[str], None] = _ignore,
    even_if_hopeless: bool = False,
) -> PublishedClassifier:
    """Publish the classifier of the release that ``settings`` describe, without a server.

    Args:
        settings: the whole configuration.
        public: the path of a CSV of public points; None without public points.
        noise: the source of randomness.
        progress: receives the stages of the opening.
        tell: a function that is called with lines for the operator: the accuracy to expect, and the
            number of public points that are equal to a private row.
        even_if_hopeless: whether to open even a release that will give almost no stable answers;
            the ledger records this choice.

    Raises:
        ConfigurationError: the configuration, the data or the public points are invalid, or the
            ledger belongs to another release.
        VerificationError: a classifier is published already.
        IntegrityError: the ledger was altered.
        ContainedError: an unexpected failure; the error's text is fixed.

    """
    configuration = configure(settings, even_if_hopeless=even_if_hopeless)
    if settings.generations is not None:
        raise ConfigurationError("generations", LEARNS_BY_ITSELF)
    public_values = read_points(settings, public)
    before = _rows_beside_points(
        configuration, public_values, noise, progress, tell, check_first_classifier
    )
    secret = None if before is None else before.secret
    with _opened_ledger(settings, noise, tell, secret=secret) as ledger:
        check_learnable(configuration, ledger)
        rows = _rows_to_draw(configuration, public_values, before, ledger, progress, tell)
        with closing_where_it_fails(rows):
            published = learn(
                configuration,
                ledger=ledger,
                rows=rows,
                public_values=public_values,
                noise=noise,
                progress=progress,
                tell=tell,
            )
    ledger.close()
    return published


def statistics_from_settings(
    settings: Settings,
    raw: Sequence[object],
    *,
    public: Path | None,
    noise: NoiseSource,
    progress: Progress = no_progress,
    tell: Callable[[str], None] = _ignore,
    even_if_hopeless: bool = False,
) -> StatisticsAnswer:
    """Return each given rule's mean outcome over the private rows, from the release's statistics.

    A rule (hypothesis) has one of two outcomes on each row; the mean counts the first outcome as -1
    and the second as 1. The release publishes one table with a noisy count of rows for each rule,
    from which the means are computed. If it has no table yet, the table is first drawn and
    published.

    Args:
        settings: the whole configuration.
        raw: the rules, as decoded from JSON.
        public: the path of a CSV of public points; None without public points.
        noise: the source of randomness.
        progress: receives the stages of the opening.
        tell: a function that is called with lines for the operator: the accuracy of a new table,
            and the number of public points that are equal to a private row.
        even_if_hopeless: whether to open even a release that will give almost no stable answers;
            the ledger records this choice.

    Raises:
        ConfigurationError: the configuration, the data or the public points are invalid, or the
            ledger belongs to another release.
        RequestError: a rule does not fit the schema, or the table does not contain it.
        VerificationError: the table may not be drawn now.
        IntegrityError: the ledger was altered.
        ContainedError: an unexpected failure; the error's text is fixed.

    """
    configuration = configure(settings, even_if_hopeless=even_if_hopeless)
    schema = configuration.schema
    asked = parse_hypotheses(schema, raw)
    public_values = read_points(settings, public)
    before = _rows_beside_points(
        configuration, public_values, noise, progress, tell, check_first_table
    )
    secret = None if before is None else before.secret
    with _opened_ledger(settings, noise, tell, secret=secret) as ledger:
        check_openable(configuration, ledger, has_points=public is not None)
        state = ledger.read_state()
        if state.statistics is None:
            rows = _rows_to_draw(configuration, public_values, before, ledger, progress, tell)
            with closing_where_it_fails(rows):
                state = open_at_once(
                    configuration,
                    ledger=ledger,
                    rows=rows,
                    public_values=public_values,
                    noise=noise,
                    progress=progress,
                    tell=tell,
                )
        elif public is not None:
            tell(OPEN_ALREADY)
        answer = released_table(state, ledger, schema).answer(asked)
    ledger.close()
    return answer


@contextmanager
def _opened_ledger(
    settings: Settings,
    noise: NoiseSource,
    warn: Callable[[str], None],
    expect_head: str | None = None,
    secret: bytes | None = None,
) -> Iterator[Ledger]:
    """Open the ledger to be written, and close it where what is done with it fails."""
    head_file = head_file_of(settings.ledger_url, settings.ledger.head_file)
    if head_file is not None:
        check_no_ledger(settings.ledger_url, head_file)
    name = settings.release.name
    ledger = open_ledger(settings.ledger_url, create=True, name=name, noise=noise, secret=secret)
    try:
        _require_newest(ledger, head_file, warn, expect_head)
        with advising(settings):
            yield ledger
    except ConclaveError:
        ledger.close()
        raise
    except Exception as error:  # noqa: BLE001 -- containment: whatever it says may be private
        ledger.close()
        raise _contained(error) from None


def _contained(error: Exception) -> ConclaveError:
    """Return a fixed text for an error that was not foreseen, the machine's told apart."""
    return MachineError() if made_by_machine(error) else ContainedError(CONTAINED)


def _require_newest(
    ledger: Ledger,
    head_file: HeadFile | None,
    warn: Callable[[str], None],
    expect_head: str | None,
) -> None:
    """Refuse a ledger that is older than what was noted of it, and note it from now on."""
    if expect_head is not None:
        check_expected_head(ledger, expect_head)
    if head_file is not None:
        for line in keep_newest(ledger, head_file):
            warn(line)


async def _close(opening: asyncio.Task[ConclaveService | None]) -> None:
    """Drain the service if it is open; give up on what takes too long.

    An opening or a switch under way left no trace outside: the next start
    draws again under the same charge.
    """
    if not opening.done():
        opening.cancel()
        return
    service = opening.result()
    if service is not None:
        closing = asyncio.create_task(service.close())
        await asyncio.wait({closing}, timeout=CLOSE_SECONDS_MAX)
        if closing.cancel():
            await asyncio.wait({closing})
        else:
            closing.result()
