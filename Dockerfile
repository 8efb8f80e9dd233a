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

# Of the distribution, what the program needs: redis-server for the embedded queue, with its libraries and their
# licences, and the certificates of authorities for https.
FROM ${BASE_IMAGE} AS system
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates redis-server \
 && mkdir -p /image/etc /folders && install -d -m 1777 /image/tmp \
 && files="/usr/bin/redis-server $(ldd /usr/bin/redis-server | grep -o '/[^ ]*')" \
 && owners="$(for file in $files; do dpkg -S "*/${file##*/}" | cut -d: -f1; done | sort -u)" \
 && licences="$(for owner in $owners gcc-*-base; do ls /usr/share/doc/$owner/copyright; done)" \
 && cp -L --parents $files $licences /etc/ssl/certs/ca-certificates.crt /image/ \
 && echo backstop:x:10001:10001::/data:/usr/sbin/nologin > /image/etc/passwd \
 && echo backstop:x:10001: > /image/etc/group \
 && install -d -m 0700 /folders/data /folders/data-demo

# There is no shell and no package manager in the image. /data-demo is the data folder of serve --demo.
FROM scratch
ARG VERSION=dev
ARG COMMIT
ARG DATE
LABEL org.opencontainers.image.title="Backstop" \
      org.opencontainers.image.description="Payment callbacks and merchant notifications" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}" \
      org.opencontainers.image.created="${DATE}"
COPY --from=system /image/ /
COPY --from=system --chown=10001:10001 /folders/ /
COPY --from=build /backstop /usr/bin/backstop
COPY --from=build /src/LICENSE /usr/share/doc/backstop/copyright
USER 10001:10001
ENV PATH=/usr/bin \
    BACKSTOP_LISTEN=0.0.0.0:8080 \
    BACKSTOP_DATA=/data
VOLUME /data
WORKDIR /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s --retries=3 \
    CMD ["backstop", "health"]
ENTRYPOINT ["backstop"]
CMD ["serve"]
