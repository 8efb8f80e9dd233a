# Base images are arguments, so that you can use a mirror or your own images.
ARG GO_IMAGE=golang:1.26-bookworm
ARG BASE_IMAGE=debian:bookworm-slim

FROM ${GO_IMAGE} AS build
# Empty means Go's defaults.
ARG GOPROXY
ARG GOSUMDB
ARG VERSION=dev
# For `backstop version`, since the repository is not copied: git rev-parse HEAD, and its date
# (git show -s --format=%cI).
ARG COMMIT
ARG DATE
WORKDIR /src
# The modules are a separate layer, so that a change of code does not download them again.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN ./.ci/build /backstop "-X main.version=${VERSION} -X main.commit=${COMMIT} -X main.date=${DATE}"

FROM ${BASE_IMAGE}
# redis-server is the embedded queue; ca-certificates is for https. /data-demo
# is the data folder of serve --demo.
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates redis-server \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log \
 && groupadd --gid 10001 backstop \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin backstop \
 && install -d -m 0700 -o backstop -g backstop /data /data-demo
COPY --from=build /backstop /usr/local/bin/backstop
USER 10001:10001
ENV BACKSTOP_LISTEN=0.0.0.0:8080 \
    BACKSTOP_DATA=/data
VOLUME /data
WORKDIR /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s --retries=3 \
    CMD ["backstop", "health"]
ENTRYPOINT ["backstop"]
CMD ["serve"]
