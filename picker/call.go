package picker

import (
	"context"
	"errors"
	"io"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pacer-dev/pacer/providers"
)

// owed is the message that Envoy waits for an answer to. In the modes that are not
// full duplex it sends nothing more until it has one.
type owed uint8

const (
	owesNothing owed = iota
	owesRequestHead
	owesRequestBody
	owesAnswerHead
	owesAnswerBody
)

// call is one HTTP request as Envoy shows it. Beside receive it belongs to the
// goroutine of Process.
type call struct {
	s      *Server
	stream extproc.ExternalProcessor_ProcessServer
	ctx    context.Context // over when the stream is, or when the exchange has ended

	inbox chan *extproc.ProcessingRequest // closed when nothing more comes
	over  error                           // why; read it when inbox is closed

	up, down mode.ProcessingMode_BodySendMode // of bodies: of the request, of its answer
	observes bool
	head     []*core.HeaderValue // of the request, with Envoy's own
	bare     bool                // the request has no body
	trailers bool                // the request has trailers, which are owed an answer
	owes     owed

	source   string   // the address of the client; "" = Envoy does not tell it
	only     []string // where the request may go; nil = anywhere
	carried  *providers.Carried
	deadline time.Time // for the body of the request; zero = none
	lose     func()    // ends the stream, whatever it hangs in

	answer answer
}

var errOver = errors.New("picker: the stream is over")

// receive takes what Envoy sends, until it sends no more. The end of the stream
// ends ctx, unless it is how Envoy says that the answer is over.
func (c *call) receive(cancel context.CancelCauseFunc) {
	shown, whole := true, false // bodies of answers are shown; the end of the stream is that of the answer
	for {
		m, err := c.stream.Recv()
		if err == nil {
			if p := m.GetProtocolConfig(); p != nil {
				shown = p.GetResponseBodyMode() != mode.ProcessingMode_NONE
			}
			whole = whole || !shown && m.GetResponseHeaders() != nil
			select {
			case c.inbox <- m:
				continue
			case <-c.ctx.Done():
				err = context.Cause(c.ctx)
			}
		}
		c.over = err
		close(c.inbox)
		if err != io.EOF || !whole {
			cancel(errOver)
		}
		return
	}
}

// next waits for the next message, or for the end of ctx.
func (c *call) next(ctx context.Context) (*extproc.ProcessingRequest, error) {
	select {
	case m, ok := <-c.inbox:
		if !ok {
			return nil, c.over
		}
		return m, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// begin takes the head of the request.
func (c *call) begin(m *extproc.ProcessingRequest) {
	h := m.GetRequestHeaders()
	c.head, c.bare, c.owes = h.GetHeaders().GetHeaders(), h.GetEndOfStream(), owesRequestHead
	c.observes = m.GetObservabilityMode()
	if p := m.GetProtocolConfig(); p != nil {
		c.up, c.down = p.GetRequestBodyMode(), p.GetResponseBodyMode()
	}
	c.hints(m)
}

// send sends an answer to Envoy.
func (c *call) send(m *extproc.ProcessingResponse) error {
	return c.stream.Send(m)
}

// duplex reports whether messages of a body in mode m go both ways at once.
func duplex(m mode.ProcessingMode_BodySendMode) bool {
	return m == mode.ProcessingMode_FULL_DUPLEX_STREAMED
}

// bodyLimit is how much of a body one message carries, in bytes: some proxies take
// no more than 64 KiB.
const bodyLimit = 62_000

// pieces calls send for each piece of p, the last one with the end of the body if
// it is that.
func pieces(p []byte, end bool, send func(*extproc.CommonResponse) error) error {
	for {
		piece := p[:min(len(p), bodyLimit)]
		p = p[len(piece):]
		err := send(&extproc.CommonResponse{BodyMutation: &extproc.BodyMutation{Mutation: &extproc.BodyMutation_StreamedResponse{
			StreamedResponse: &extproc.StreamedBodyResponse{Body: piece, EndOfStream: end && len(p) == 0},
		}}})
		if err != nil || len(p) == 0 {
			return err
		}
	}
}

func requestHead(r *extproc.CommonResponse) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{RequestHeaders: &extproc.HeadersResponse{Response: r}}}
}

func requestBody(r *extproc.CommonResponse) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{RequestBody: &extproc.BodyResponse{Response: r}}}
}

func requestTrailers() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestTrailers{RequestTrailers: &extproc.TrailersResponse{}}}
}

func answerHead(r *extproc.CommonResponse) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseHeaders{ResponseHeaders: &extproc.HeadersResponse{Response: r}}}
}

func answerBody(r *extproc.CommonResponse) *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseBody{ResponseBody: &extproc.BodyResponse{Response: r}}}
}

func answerTrailers() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ResponseTrailers{ResponseTrailers: &extproc.TrailersResponse{}}}
}

// word returns the text under key in a struct; "" = there is none.
func word(s *structpb.Struct, key string) string { return s.GetFields()[key].GetStringValue() }
