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
    """``[ledger]``: the database that stores entries, answers and private state."""

    url: Annotated[
        Address,
        Field(description="SQLAlchemy URL; unset, conclave.db beside the configuration."),
    ]
    head_file: Annotated[
        OptionalFile | None,
        Field(
            description="File that notes the newest entry outside the database, best on another "
            "disk; unset, the database's path with .head after it; false keeps none."
        ),
    ] = None


class OidcSettings(Section):
    """``[server.oidc]``: OpenID tokens accepted besides API keys; needs the extra ``oidc``."""

    issuer: Annotated[
        Issuer,
        Field(
            description="Address of the provider, as in `iss` of its tokens: https, or http on "
            "loopback."
        ),
    ]
    audience: Annotated[
        Text,
        Field(
            description="This server's name at the provider, which `aud` of a token must contain."
        ),
    ]
    roles_claim: Annotated[
        Text,
        Field(
            description="Claim with the roles `query`, `read` and `admin`: a list, or a text with "
            "spaces between; others are ignored."
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
            description="Maximum number of unstable answers for each subject; with scores, units "
            "of the cutoff.",
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
            description="Port for the Open Inference Protocol over gRPC, such as 8081; 0 takes a "
            "free one; unset, none. Needs the extra `grpc`.",
        ),
    ] = None
    keys_file: Annotated[
        FilePath | None,
        Field(
            description="TOML file of keys and roles; unset, loopback only, unless `oidc` is set."
        ),
    ] = None
    keys_reload_seconds: Annotated[
        Number,
        Unit("seconds"),
        Field(ge=0.1, le=3600, description="How often the file of keys is checked for changes."),
    ] = 1.0
    oidc: Annotated[
        OidcSettings | None,
        Field(description="A table, described below; unset, no tokens are accepted."),
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
            description="Time until a body must be complete after that, except for streams.",
        ),
    ] = 60.0
    keep_alive_seconds_max: Annotated[
        Whole,
        Unit("seconds"),
        Field(ge=1, le=3600, description="Time until a connection without a request is closed."),
    ] = 5
    stream_idle_seconds_max: Annotated[
        Number,
        Unit("seconds"),
        Field(
            ge=0.5,
            le=86400,
            description="Time until a stream must have sent another complete line.",
        ),
    ] = 600.0
    stalled_seconds_max: Annotated[
        Number,
        Unit("seconds"),
        Field(ge=0.5, le=3600, description="Time until a client must have read more of its reply."),
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
            description="Maximum number of open connections of one address, possibly a proxy's.",
        ),
    ] = 2048
    streams_max: Annotated[
        Whole,
        Unit("streams"),
        Field(
            ge=1,
            le=10**6,
            description="Maximum number of open streams of queries and events, of all clients.",
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
        Field(ge=1, le=10**6, description="Maximum number of queries that wait for the writer."),
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
            description="Whether `GET /metrics` has the answers of each API key by its name, for "
            "every reader of the metrics."
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
        Literal["info", "warning", "error"], Field(description="Lowest level that is written.")
    ] = "info"
    requests: Annotated[
        StrictBool,
        Field(
            description="Whether every request gets a log line: route, status and ids, no time.",
        ),
    ] = False


class EngineSettings(Section):
    """``[engine]``: the threads or the cluster that read the rows; no answer depends on them."""

    name: Annotated[
        Literal["local", "dask"],
        Field(
            description="Engine of an opening: `local`, threads of this process, or `dask`, the "
            "workers of a Dask cluster; needs the extra `dask`. No answer depends on it."
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
            description="Threads of `local`, or workers of the cluster that are used; all there "
            "are where it is unset.",
        ),
    ] = None


class TelemetrySettings(Section):
    """``[telemetry]``: traces that are sent to a collector; needs the extra `telemetry`."""

    traces_endpoint: Annotated[
        HttpAddress | None,
        Field(
            description="Address of the collector for OTLP over HTTP, such as "
            "http://127.0.0.1:4318/v1/traces; unset, no traces.",
        ),
    ] = None
    resolution_seconds: Annotated[
        Number,
        Unit("seconds"),
        Field(
            ge=0.001,
            le=60,
            description="Times of spans are rounded outwards to multiples of this.",
        ),
    ] = 0.01
    service_name: Annotated[Text, Field(description="Name of the server at the collector.")] = (
        "conclave"
    )
