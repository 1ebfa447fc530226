# Two images from one wheel:
#
#   docker build -t sfumato-desk .                    # the analyst's desk, sfumato serve
#   docker build -t sfumato-site --target site .      # a site of a federation
#
# docs/install.md says how to run them. Tables, keys and above all the ledger live on folders of the host that are
# mounted: what is written inside a container is gone with it, and an account that is gone is a fresh budget. So the
# images have no folder for them, and without a mount nothing starts.
FROM python:3.11-slim AS wheel
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheel .

FROM python:3.11-slim AS base
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 HOME=/tmp
COPY --from=wheel /wheel /wheel

FROM base AS site
ENV FLWR_HOME=/tmp/flwr FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1
# hadolint ignore=DL3013  # the wheel is our own, its requirements are in it
RUN set -- /wheel/*.whl && pip install --no-cache-dir "$1[federated]"
USER 1000:1000
ENTRYPOINT ["sfumato", "federated", "site"]

FROM base AS desk
# hadolint ignore=DL3013  # the wheel is our own, its requirements are in it
RUN set -- /wheel/*.whl && pip install --no-cache-dir "$1[web,formats]"
USER 1000:1000
EXPOSE 8765
ENTRYPOINT ["sfumato", "serve", "/tables", "--host", "0.0.0.0", "--remote", "--no-browser"]
