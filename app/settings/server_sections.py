"""The sections ``[ledger]`` and ``[server]``: where data is stored, and how it is served."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool, StrictInt

from app.settings.field_types import (
    Address,
    FilePath,
    HttpAddress,
    Issuer,
    Number,
    OptionalFile,
    Section,
    Text,
    Unit,
    Whole,
)


class LedgerSettings(Section):
    """``[ledger]``: the database of the entries, the answers, and the secrets of the release."""

    url: Annotated[
        Address,
        Field(
            description="SQLAlchemy URL; if unset, the file conclave.db next to the configuration."
        ),
    ]
    head_file: Annotated[
        OptionalFile | None,
        Field(
            description="File that notes the newest entry outside the database, best on another "
            "disk; if unset, the database's path with .head after it; false keeps no "
            "such file."
        ),
    ] = None


class OidcSettings(Section):
    """``[server.oidc]``: OpenID tokens in addition to API keys; needs the extra ``oidc``.

    The extra is a group of optional Python packages: ``pip install 'conclave[oidc]'``.
    """

    issuer: Annotated[
        Issuer,
        Field(
            description="Address of the provider, as in the claim `iss` of its tokens: https, or "
            "http on loopback."
        ),
    ]
    audience: Annotated[
        Text,
        Field(
            description="This server's name at the provider, which the claim `aud` of a token must "
            "contain."
        ),
    ]
    roles_claim: Annotated[
        Text,
        Field(
            description="Claim with the roles `query`, `read` and `admin`: a list, or a text "
            "separated by spaces; other values are ignored."
        ),
    ] = "roles"
    limit: Annotated[
        Whole | None,
        Unit("answers"),
        Field(ge=0, le=10**15, description="Maximum number of new answers for each subject."),
    ] = None
    unstable_limit: Annotated[
        Whole | None,
        Unit("answers"),
        Field(
            ge=0,
            le=10**15,
            description="Maximum number of unstable answers for each subject; with scores, of "
            "failed stability tests.",
        ),
    ] = None


class ServerSettings(Section):
    """``[server]``: the address of the server, its API keys, and the limits of a request."""

    host: Annotated[Text, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        Whole, Field(ge=0, le=65535, description="Port to listen on; 0 chooses a free one.")
    ] = 8000
    grpc_port: Annotated[
        Whole | None,
        Field(
            ge=0,
            le=65535,
            description="Port for the Open Inference Protocol over gRPC, such as 8081; 0 chooses a "
            "free one; if unset, the server does not listen for gRPC. Needs the "
            "optional dependencies `grpc`.",
        ),
    ] = None
    keys_file: Annotated[
        FilePath | None,
        Field(
            description="TOML file of API keys and their roles; if unset, only clients on this "
            "machine (loopback) are accepted, unless `oidc` is set."
        ),
    ] = None
    keys_reload_seconds: Annotated[
        Number,
        Unit("seconds"),
        Field(ge=0.1, le=3600, description="How often the keys file is checked for changes."),
    ] = 1.0
    oidc: Annotated[
        OidcSettings | None,
        Field(description="A table, described below; if unset, no tokens are accepted."),
    ] = None
    request_bytes_max: Annotated[
        Whole,
        Unit("bytes"),
        Field(ge=1024, le=2**30, description="Largest body of a request, except for streams."),
    ] = 4 * 2**20
    stream_line_bytes_max: Annotated[
        Whole, Unit("bytes"), Field(ge=256, le=2**30, description="Longest line of a stream.")
    ] = 2**18
    header_bytes_max: Annotated[
        Whole,
        Unit("bytes"),
        Field(ge=1024, le=2**20, description="Longest request line and headers together."),
    ] = 32_768
    header_seconds_max: Annotated[
        Number,
        Unit("seconds"),
        Field(ge=0.5, le=3600, description="Time until the headers of a request must be complete."),
    ] = 10.0
    body_seconds_max: Annotated[
        Number,
        Unit("seconds"),
        Field(
            ge=0.5,
            le=3600,
            description="Time after its headers until the body of a request must be complete, "
            "except for streams.",
        ),
    ] = 60.0
    keep_alive_seconds_max: Annotated[
        Whole,
        Unit("seconds"),
        Field(
            ge=1,
            le=3600,
            description="Idle time after which a connection without a request is closed.",
        ),
    ] = 5
    stream_idle_seconds_max: Annotated[
        Number,
        Unit("seconds"),
        Field(
            ge=0.5,
            le=86400,
            description="Time within which a stream must send another complete line.",
        ),
    ] = 600.0
    stalled_seconds_max: Annotated[
        Number,
        Unit("seconds"),
        Field(
            ge=0.5, le=3600, description="Time within which a client must read more of its reply."
        ),
    ] = 60.0
    connections_max: Annotated[
        Whole,
        Unit("connections"),
        Field(ge=1, le=10**6, description="Maximum number of open connections of all clients."),
    ] = 4096
    connections_per_client_max: Annotated[
        Whole,
        Unit("connections"),
        Field(
            ge=1,
            le=10**6,
            description="Maximum number of open connections of one client address, which may be a "
            "proxy.",
        ),
    ] = 2048
    streams_max: Annotated[
        Whole,
        Unit("streams"),
        Field(
            ge=1,
            le=10**6,
            description="Maximum number of open streams of queries and events, of all clients "
            "together.",
        ),
    ] = 256
    streams_per_key_max: Annotated[
        Whole,
        Unit("streams"),
        Field(ge=1, le=10**6, description="Maximum number of open streams of one API key."),
    ] = 64
    pending_queries_max: Annotated[
        Whole,
        Unit("queries"),
        Field(ge=1, le=10**6, description="Maximum number of queries that wait to be decided."),
    ] = 10_000
    time_metrics: Annotated[
        StrictBool,
        Field(
            description="Whether `GET /metrics` counts the times of requests and commits, in "
            "coarse buckets."
        ),
    ] = True
    key_metrics: Annotated[
        StrictBool,
        Field(
            description="Whether `GET /metrics` shows every reader of the metrics the number of "
            "answers of each API key, under its name."
        ),
    ] = False

    @property
    def port_is_set(self) -> bool:
        """Whether the port was set, not left at its default."""
        return "port" in self.model_fields_set


class LogsSettings(Section):
    """``[logs]``: the events that the server writes to stderr."""

    format: Annotated[
        Literal["json", "console"],
        Field(description="Format of a log line: one JSON object, or text for people."),
    ] = "json"
    level: Annotated[
        Literal["info", "warning", "error"],
        Field(description="Lowest level of events that is written."),
    ] = "info"
    requests: Annotated[
        StrictBool,
        Field(
            description="Whether every request gets a log line with its route, status and ids, but "
            "no duration.",
        ),
    ] = False


class EngineSettings(Section):
    """``[engine]``: the threads or the cluster that read the rows; no answer depends on them."""

    name: Annotated[
        Literal["local", "dask"],
        Field(
            description="What reads the rows when a release opens: threads of this process "
            "(`local`), or the workers of a Dask cluster (`dask`), which needs the "
            "optional dependencies `dask`. No answer depends on it."
        ),
    ] = "local"
    address: Annotated[
        Text | None,
        Field(
            description="Address of the cluster's scheduler, such as tls://scheduler:8786, for "
            "`dask`."
        ),
    ] = None
    workers: Annotated[
        StrictInt | None,
        Field(
            ge=1,
            le=4096,
            description="Number of threads of `local`, or of workers of the cluster; if unset, all "
            "are used.",
        ),
    ] = None


class TelemetrySettings(Section):
    """``[telemetry]``: traces that are sent to a collector; needs the extra `telemetry`.

    The extra is a group of optional Python packages: ``pip install 'conclave[telemetry]'``.
    """

    traces_endpoint: Annotated[
        HttpAddress | None,
        Field(
            description="Address of the collector for OTLP over HTTP, such as "
            "http://127.0.0.1:4318/v1/traces; if unset, nothing is traced.",
        ),
    ] = None
    resolution_seconds: Annotated[
        Number,
        Unit("seconds"),
        Field(
            ge=0.001,
            le=60,
            description="The start of a span (a timed step of a request) is rounded down, and its "
            "end up, to a multiple of this.",
        ),
    ] = 0.01
    service_name: Annotated[
        Text, Field(description="Name of the server in the traces that the collector receives.")
    ] = "conclave"
