# One image for all programs: `worker` runs tasks, and is the front door for `enqueue serve`; `errand-keeper` supervises each run.

# GO_IMAGE is what the programs are compiled in: an argument, for mirrors and builds without a registry.
ARG GO_IMAGE=golang:1.26-bookworm
# RUNTIME_IMAGE is what the image is based on, with Node for the CLI: an argument likewise.
ARG RUNTIME_IMAGE=node:24-bookworm-slim

FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
# VERSION is what /api/health says, because the context has no .git (--build-arg VERSION=$(git rev-parse --short HEAD)).
ARG VERSION=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags="-s -w -X github.com/errand-fleet/errand/cmd/internal/version.version=${VERSION}" -o /out/ ./cmd/worker ./cmd/enqueue ./agent/cmd/errand-keeper \
 && chmod 0711 /out/*

FROM ${RUNTIME_IMAGE}
LABEL org.opencontainers.image.title="errand" \
      org.opencontainers.image.description="Background workers that run errands with the Claude Code CLI" \
      org.opencontainers.image.source="https://github.com/errand-fleet/errand"

# git and ripgrep are for the CLI and errand; tini reaps orphans; bubblewrap works in containers that permit user namespaces
# (docs/security.md#postures). The uid is fixed, because volumes outlive images. The programs that hold secrets, tini and errand's, are executable
# but not readable: the kernel then hides their processes from other processes of the same user, from the first instruction on.
# BROWSER is set, to anything, for a browser with which agents look at what they build (docs/environment.md#pictures-of-pages).
ARG BROWSER
RUN apt-get update \
 && apt-get install -y --no-install-recommends bubblewrap ca-certificates git ripgrep tini \
      ${BROWSER:+chromium-headless-shell fonts-liberation fonts-noto-color-emoji} \
 && rm -rf /var/lib/apt/lists/* \
 && chmod 0711 /usr/bin/tini \
 && groupadd --gid 10001 errand \
 && useradd --uid 10001 --gid errand --home-dir /var/lib/errand --no-create-home --shell /bin/bash errand \
 && install -d -o errand -g errand -m 0700 /var/lib/errand

# In this stage and in one step, because the CLI is a hard link to the same file twice, and a copy would need 380 MB for each.
WORKDIR /opt/errand
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-progress \
 && rm -rf /root/.npm \
 && node_modules/.bin/claude --version

COPY --from=build /out/ /usr/local/bin/

# package.json pins the CLI, so it must not update itself.
ENV PATH=/opt/errand/node_modules/.bin:$PATH \
    DISABLE_AUTOUPDATER=1 \
    ERRAND_STATE_DIR=/var/lib/errand
USER 10001:10001
WORKDIR /var/lib/errand
VOLUME /var/lib/errand
EXPOSE 8080

# The worker needs up to 60 s to stop: allow 90 (docker stop -t 90, stop_grace_period, terminationGracePeriodSeconds).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 CMD ["worker", "healthcheck"]
# Without -g: only the worker gets the signal, and stops its runs in order.
ENTRYPOINT ["tini", "--"]
CMD ["worker"]
