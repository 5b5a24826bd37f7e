// Package picker is the endpoint picker of an Envoy: an external processor
// (ext_proc v3, gRPC) that speaks the endpoint-picker protocol of the Gateway API
// Inference Extension.
//
// It decides and measures nothing itself. Each gRPC stream is one HTTP request
// that Envoy holds: it becomes a request to the gateway's own handler, whose
// connection to the backend is Envoy (providers.Carried). So a request that comes
// through Envoy takes the same steps as any other: keys, limits, the decision and
// its lease, the meter, one settling. What the handler sends to its backend
// becomes the destination and the edits of headers and body; what it answers
// becomes the answer that Envoy passes on, or an immediate response.
//
// A stream has two goroutines: one receives, so that a client that hangs up is
// noticed in every phase, and the other is the exchange. They share an unbuffered
// channel, so that Envoy is held back by gRPC's flow control, and no more than one
// message of a stream waits.
package picker
