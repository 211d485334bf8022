# syntax=docker/dockerfile:1
# docker build --build-arg VERSION=v1.2.3 -t ordered-dispatcher .
# Not run by CI, which has no Docker: see docs/install.md.

# The compiler runs on the machine that builds, whatever it builds for.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY . .
ARG VERSION=""
ARG TARGETOS
ARG TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X github.com/ordered-dispatcher/ordered-dispatcher/command.released=$VERSION" \
    -o /out/ordered-dispatcher ./cmd/ordered-dispatcher

# It has certificates, time zones and a user, and no shell. It writes nothing: run it with a read-only root.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ordered-dispatcher /usr/bin/ordered-dispatcher
USER 65532:65532
EXPOSE 9090
ENTRYPOINT ["/usr/bin/ordered-dispatcher"]
CMD ["run", "-c", "/etc/ordered-dispatcher/dispatcher.yaml", "--listen", "0.0.0.0:9090"]
