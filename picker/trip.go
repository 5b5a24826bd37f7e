package picker

import (
	"context"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"syscall"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pacer-dev/pacer/providers"
)

// trip has Envoy send req, and returns the answer when its head has come.
func (c *call) trip(req *http.Request) (*http.Response, error) {
	if err := c.sendUp(req); err != nil {
		return nil, err
	}
	for {
		m, err := c.next(req.Context())
		if err != nil {
			return nil, err
		}
		switch {
		case m.GetResponseHeaders() != nil:
			return c.answered(req.Context(), m)
		case m.GetRequestTrailers() != nil:
			if err := c.send(requestTrailers()); err != nil {
				return nil, err
			}
		case m.GetRequestBody() != nil: // some releases of Envoy repeat the last piece of a large body (envoyproxy/envoy#46237)
		default:
			return nil, errOrder
		}
	}
}

// sendUp answers the request's own messages: where it goes, what of its head is
// another, and its body.
func (c *call) sendUp(req *http.Request) error {
	var body []byte
	if req.Body != nil && req.ContentLength > 0 {
		body = make([]byte, req.ContentLength)
		_, err := io.ReadFull(req.Body, body)
		_ = req.Body.Close()
		if err != nil {
			return err
		}
	}
	to := strings.Join(append([]string{c.carried.Chosen}, c.carried.Instead...), ",")
	change := &extproc.CommonResponse{HeaderMutation: c.edits(req, to, len(body)), ClearRouteCache: true}
	owed := c.owes
	c.owes = owesNothing
	if owed == owesRequestBody {
		change.BodyMutation = &extproc.BodyMutation{Mutation: &extproc.BodyMutation_Body{Body: body}}
		return c.send(directed(requestBody(change), to))
	}
	if err := c.send(directed(requestHead(change), to)); err != nil || c.bare {
		return err
	}
	err := pieces(body, !c.trailers, func(piece *extproc.CommonResponse) error { return c.send(requestBody(piece)) })
	if err == nil && c.trailers {
		c.trailers = false
		err = c.send(requestTrailers())
	}
	return err
}

// directed adds to m where the request goes.
func directed(m *extproc.ProcessingResponse, to string) *extproc.ProcessingResponse {
	m.DynamicMetadata = &structpb.Struct{Fields: map[string]*structpb.Value{
		destinationSpace: structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			destination: structpb.NewStringValue(to),
		}}),
	}}
	return m
}

// edits are what of the head is another for the backend than it was from the
// client. What Envoy itself put there stays.
func (c *call) edits(req *http.Request, to string, length int) *extproc.HeaderMutation {
	e := &extproc.HeaderMutation{}
	had := valuesOf(c.head)
	set(e, destination, to)
	if path := req.URL.RequestURI(); one(had[":path"]) != path {
		set(e, ":path", path)
	}
	if one(had[":method"]) != req.Method {
		set(e, ":method", req.Method)
	}
	if told := strconv.Itoa(length); length > 0 && one(had["content-length"]) != told {
		set(e, "content-length", told)
	}
	for name, values := range req.Header {
		name = strings.ToLower(name)
		was := had[name]
		delete(had, name)
		if len(values) > 0 && (len(values) > 1 || !slices.Equal(was, values)) {
			set(e, name, values...)
		}
	}
	for name := range had {
		if !envoysOwn(name) {
			e.RemoveHeaders = append(e.RemoveHeaders, name)
		}
	}
	return e
}

// envoysOwn reports whether a header of a request is Envoy's, or of the connection,
// which is Envoy's too.
func envoysOwn(name string) bool {
	switch name {
	case "host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "expect", "x-request-id", destination:
		return true
	}
	return strings.HasPrefix(name, ":") || strings.HasPrefix(name, "x-envoy-") || strings.HasPrefix(name, "x-forwarded-")
}

// valuesOf are the values of a head, by name.
func valuesOf(head []*core.HeaderValue) map[string][]string {
	values := make(map[string][]string, len(head))
	for _, h := range head {
		values[h.GetKey()] = append(values[h.GetKey()], valueOf(h))
	}
	return values
}

func one(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// set has a header have these values and no others.
func set(e *extproc.HeaderMutation, name string, values ...string) {
	action := core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD
	for _, v := range values {
		e.SetHeaders = append(e.SetHeaders, &core.HeaderValueOption{
			Header: &core.HeaderValue{Key: name, RawValue: []byte(v)}, AppendAction: action, KeepEmptyValue: true,
		})
		action = core.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
	}
}

// answered takes the head of the answer. ctx is over when nobody reads its body
// any more.
func (c *call) answered(ctx context.Context, m *extproc.ProcessingRequest) (*http.Response, error) {
	h := m.GetResponseHeaders()
	c.owes = owesAnswerHead
	a := &c.answer
	a.head, a.came = h.GetHeaders().GetHeaders(), true
	c.carried.Served = word(m.GetMetadataContext().GetFilterMetadata()[destinationSpace], destinationServed)
	resp := &http.Response{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1}
	for _, h := range a.head {
		name, value := h.GetKey(), valueOf(h)
		switch {
		case name == ":status":
			resp.StatusCode, _ = strconv.Atoi(value)
		case name == "content-length":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				resp.ContentLength = n
			}
			fallthrough
		case !strings.HasPrefix(name, ":"):
			name = textproto.CanonicalMIMEHeaderKey(name)
			resp.Header[name] = append(resp.Header[name], value)
		}
	}
	a.upstream = resp.StatusCode
	if err := notSent(m); err != nil {
		a.immediate = true
		return nil, err
	}
	a.body = downBody{c: c, ctx: ctx, over: h.GetEndOfStream()}
	a.immediate = h.GetEndOfStream() // no body can be put behind a head that is all there is
	resp.Body = &a.body
	return resp, nil
}

// notSent says why no backend answered, where Envoy answered in its place; nil = a
// backend did, or Envoy does not tell.
func notSent(m *extproc.ProcessingRequest) error {
	for _, a := range m.GetAttributes() {
		details := word(a, "response.code_details")
		switch {
		case details == "" || details == "via_upstream":
			continue
		case strings.Contains(details, "connection_termination"), strings.Contains(details, "protocol_error"):
			return &providers.SendError{Phase: providers.Headers, Err: io.EOF}
		case strings.Contains(details, "timeout"):
			return &providers.SendError{Phase: providers.Headers, Err: context.DeadlineExceeded}
		default: // no connection, or nobody to connect to
			return &providers.SendError{Phase: providers.Connect, Err: syscall.ECONNREFUSED}
		}
	}
	return nil
}

// downBody is the body of the answer as it comes from the backend.
type downBody struct {
	c        *call
	ctx      context.Context
	rest     []byte
	over     bool
	trailers bool // it has trailers, which are owed an answer
}

// Read implements io.Reader.
func (b *downBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && !b.over {
		if err := b.next(b.ctx); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 && b.over {
		return n, io.EOF
	}
	return n, nil
}

// next takes the next message of the answer.
func (b *downBody) next(ctx context.Context) error {
	if err := b.c.answer.acknowledge(); err != nil {
		return err
	}
	m, err := b.c.next(ctx)
	switch {
	case err == io.EOF && b.c.carried.Blind:
		b.over = true
	case err == io.EOF:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	case m.GetResponseBody() != nil:
		b.rest, b.over = m.GetResponseBody().GetBody(), m.GetResponseBody().GetEndOfStream()
		if !duplex(b.c.down) {
			b.c.owes = owesAnswerBody
		}
	case m.GetResponseTrailers() != nil:
		b.over, b.trailers = true, true
	case m.GetRequestTrailers() != nil:
		return b.c.send(requestTrailers())
	case m.GetRequestBody() != nil: // as in trip
	default:
		return errOrder
	}
	return nil
}

// Close implements io.Closer.
func (b *downBody) Close() error { return nil }
