# Two stages: what compiles and installs stays behind in the first.  The last has a
# Python, the libraries, the program, and nothing that installs more.
FROM python:3.11.14-slim-bookworm AS build

RUN python -m venv /opt/conclave
WORKDIR /src

# The libraries change less often than the sources: a layer of their own.  gRPC, OpenID tokens,
# traces, `s3://` and Dask are extras; here they are installed, and off until a setting asks.
COPY requirements-image.lock ./
RUN /opt/conclave/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
    --no-deps --require-hashes --requirement requirements-image.lock

COPY pyproject.toml README.md ./
COPY clients/python/conclave_client ./clients/python/conclave_client
COPY migrations ./migrations
COPY app ./app
RUN /opt/conclave/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
        --no-deps --no-build-isolation . \
    && /opt/conclave/bin/python -m pip uninstall --yes --disable-pip-version-check setuptools pip


FROM python:3.11.14-slim-bookworm

LABEL org.opencontainers.image.title="Conclave" \
      org.opencontainers.image.description="Answers classification queries on private records, with differential privacy, over HTTP."

# The ledger is the only thing that is written; everything else may be read-only.
ENV PATH=/opt/conclave/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    CONCLAVE_SERVER__HOST=0.0.0.0 \
    CONCLAVE_SERVER__PORT=8000 \
    CONCLAVE_LEDGER__URL=sqlite:////var/lib/conclave/conclave.db

# The base comes with pip, and with the wheels that would bring it back.
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
    && rm -rf "$(python -c 'import os, ensurepip; print(os.path.dirname(ensurepip.__file__))')" \
    && groupadd --system --gid 10001 conclave \
    && useradd --system --uid 10001 --gid conclave --home-dir /var/lib/conclave --shell /usr/sbin/nologin conclave \
    && install -d -o conclave -g conclave -m 0700 /var/lib/conclave /var/lib/conclave-head \
        /var/lib/conclave-keys /var/lib/conclave-backups

COPY --from=build /opt/conclave /opt/conclave
# To start a configuration from; `conclave init` writes one too.
COPY examples /opt/conclave/examples

# By number: an orchestrator that refuses root cannot look a name up.
USER 10001:10001
WORKDIR /var/lib/conclave
VOLUME /var/lib/conclave
EXPOSE 8000

HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; server = http.client.HTTPConnection('127.0.0.1', int(os.environ['CONCLAVE_SERVER__PORT']), timeout=2); server.request('GET', '/healthz'); sys.exit(server.getresponse().status != 200)"]

# SIGTERM, the default, drains: answers under way are given, and it ends within 10 seconds.
STOPSIGNAL SIGTERM

# Without --config: the embedded demo, whose data are public.
ENTRYPOINT ["conclave"]
CMD ["serve"]
