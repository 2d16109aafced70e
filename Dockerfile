FROM python:3.11.14-slim-bookworm

# The ledger is the only thing that is written; everything else may be read-only.
ENV PYTHONUNBUFFERED=1 \
    CONCLAVE_SERVER__HOST=0.0.0.0 \
    CONCLAVE_SERVER__PORT=8000 \
    CONCLAVE_LEDGER__URL=sqlite:////var/lib/conclave/conclave.db

RUN groupadd --system --gid 10001 conclave \
    && useradd --system --uid 10001 --gid conclave --home-dir /var/lib/conclave --shell /usr/sbin/nologin conclave \
    && install -d -o conclave -g conclave -m 0700 /var/lib/conclave /var/lib/conclave-head

WORKDIR /opt/conclave

# The libraries change less often than the sources: a layer of their own.
COPY requirements.lock ./
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    --no-deps --require-hashes --requirement requirements.lock

COPY pyproject.toml README.md ./
COPY migrations ./migrations
COPY app ./app
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    --no-deps --no-build-isolation .

USER conclave
WORKDIR /var/lib/conclave
VOLUME /var/lib/conclave
EXPOSE 8000

HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; server = http.client.HTTPConnection('127.0.0.1', int(os.environ['CONCLAVE_SERVER__PORT']), timeout=2); server.request('GET', '/healthz'); sys.exit(server.getresponse().status != 200)"]

# Without --config: the embedded demo, whose data are public.
ENTRYPOINT ["conclave"]
CMD ["serve"]
