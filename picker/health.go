package picker

import (
	"context"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// The names under which the health service knows the picker, as the protocol has
// them, beside that of the service itself.
const (
	liveness  = "liveness"
	readiness = "readiness"
)

// health answers gRPC's health checks: alive as long as it answers, ready while a
// backend is in service and the server takes requests.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	s *Server
}

// Check implements grpc_health_v1.HealthServer.
func (h *health) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	state := grpc_health_v1.HealthCheckResponse_SERVING
	switch r.GetService() {
	case "", liveness:
	case readiness, extproc.ExternalProcessor_ServiceDesc.ServiceName:
		if h.s.draining.Load() || !h.s.o.Ready() {
			state = grpc_health_v1.HealthCheckResponse_NOT_SERVING
		}
	default:
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	return &grpc_health_v1.HealthCheckResponse{Status: state}, nil
}
