# The static binary on an empty image with CA certificates. Images are named by
# digest: what is built today is built tomorrow.
#   make image, or docker build --build-arg VERSION=1.2.3 .
FROM golang:1.26.8-bookworm@sha256:a688600ca24f8a4d3ca77f95b0dd40704a9fc787c826660eb7ba0b641b8b175d AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG REVISION=
ARG DATE=
RUN CGO_ENABLED=0 go build -tags grpcnotrace -trimpath -ldflags "-s -w -X main.version=${VERSION} -X main.revision=${REVISION} -X main.date=${DATE}" -o /pacer ./cmd/pacer

FROM scratch
ARG VERSION=dev
ARG REVISION=
LABEL org.opencontainers.image.title="pacer" org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/pacer-dev/pacer" \
      org.opencontainers.image.version="${VERSION}" org.opencontainers.image.revision="${REVISION}"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /pacer /pacer
COPY LICENSE NOTICE cmd/pacer/licenses.txt /
USER 65532:65532
EXPOSE 8080 9090
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/pacer", "health"]
ENTRYPOINT ["/pacer"]
CMD ["serve", "-c", "/etc/pacer/pacer.yaml"]
