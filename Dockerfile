# The static binary on an empty image with CA certificates.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /pacer ./cmd/pacer

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /pacer /pacer
COPY LICENSE NOTICE /
USER 65532:65532
EXPOSE 8080 9090
ENTRYPOINT ["/pacer"]
CMD ["serve", "-c", "/etc/pacer/pacer.yaml"]
