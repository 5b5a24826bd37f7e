package picker

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	mode "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/pacer-dev/pacer/providers"
)

// The names of the endpoint-picker protocol.
const (
	destination       = "x-gateway-destination-endpoint" // header and key: where the request goes
	destinationServed = "x-gateway-destination-endpoint-served"
	destinationSubset = "x-gateway-destination-endpoint-subset"
	subsetNamespace   = "envoy.lb.subset_hint"
	destinationSpace  = "envoy.lb"

	objectiveHeader = "X-Gateway-Inference-Objective"
	fairnessHeader  = "X-Gateway-Inference-Fairness-Id"
	rewriteHeader   = "X-Gateway-Model-Name-Rewrite"
)

// maxFairness bounds the name of a turn in a line, in bytes.
const maxFairness = 256

var errBadHead = errors.New("the head of the request has no method, path or authority")

// request is the request as the handler gets it.
func (c *call) request(carried *providers.Carried) (*http.Request, error) {
	r := &http.Request{Header: http.Header{}, Proto: "HTTP/2.0", ProtoMajor: 2, RemoteAddr: c.client(), Body: http.NoBody}
	for _, h := range c.head {
		name, value := h.GetKey(), valueOf(h)
		switch name {
		case ":method":
			r.Method = value
		case ":path":
			r.RequestURI = value
		case ":authority":
			r.Host = value
		case "host", "content-length":
			// told apart
		default:
			if !strings.HasPrefix(name, ":") {
				name = textproto.CanonicalMIMEHeaderKey(name)
				r.Header[name] = append(r.Header[name], value)
			}
		}
	}
	var err error
	if r.URL, err = url.ParseRequestURI(r.RequestURI); err != nil || r.Method == "" {
		return nil, errBadHead
	}
	if !c.bare {
		r.Body, r.ContentLength = &upBody{c: c}, c.told()
	}
	carried.Model = r.Header.Get(rewriteHeader)
	if id := r.Header.Get(fairnessHeader); len(id) <= maxFairness {
		carried.Tenant = id
	}
	if class := c.s.o.Objectives[r.Header.Get(objectiveHeader)]; class != "" && r.Header.Get("X-Pacer-Class") == "" {
		r.Header.Set("X-Pacer-Class", class)
	}
	return r.WithContext(providers.Carry(c.ctx, carried)), nil
}

// told is how many bytes the client said that its body has; -1 = it did not say.
func (c *call) told() int64 {
	for _, h := range c.head {
		if h.GetKey() == "content-length" {
			if n, err := strconv.ParseInt(valueOf(h), 10, 64); err == nil && n >= 0 {
				return n
			}
		}
	}
	return -1
}

// client is the address that the request came from, as far as Envoy tells it: it
// is for the log.
func (c *call) client() string {
	if c.source != "" {
		return c.source
	}
	if p, ok := peer.FromContext(c.ctx); ok {
		return p.Addr.String()
	}
	return ""
}

func valueOf(h *core.HeaderValue) string {
	if raw := h.GetRawValue(); len(raw) > 0 {
		return string(raw)
	}
	return h.GetValue()
}

// hints takes what the data plane says beside the head of the request.
func (c *call) hints(m *extproc.ProcessingRequest) {
	for _, a := range m.GetAttributes() {
		if source := word(a, "source.address"); source != "" {
			c.source = source
		}
	}
	hint, ok := m.GetMetadataContext().GetFilterMetadata()[subsetNamespace].GetFields()[destinationSubset]
	if !ok {
		return
	}
	c.only = []string{}
	add := func(text string) {
		for endpoint := range strings.SplitSeq(text, ",") {
			if endpoint = strings.TrimSpace(endpoint); endpoint != "" {
				c.only = append(c.only, endpoint)
			}
		}
	}
	switch v := hint.GetKind().(type) {
	case *structpb.Value_StringValue:
		add(v.StringValue)
	case *structpb.Value_ListValue:
		for _, one := range v.ListValue.GetValues() {
			add(one.GetStringValue())
		}
	}
}

// upBody is the body of the request, as it comes.
type upBody struct {
	c    *call
	rest []byte
	over bool
}

var errMode = errors.New("picker: Envoy shows no body: its request_body_mode has to be FULL_DUPLEX_STREAMED or BUFFERED")

// Read implements io.Reader.
func (b *upBody) Read(p []byte) (int, error) {
	for len(b.rest) == 0 && !b.over {
		if err := b.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		b.rest = nil // its message need not stay as long as the answer runs
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *upBody) next() error {
	c := b.c
	buffered := false
	switch c.up {
	case mode.ProcessingMode_FULL_DUPLEX_STREAMED:
	case mode.ProcessingMode_BUFFERED:
		buffered = true
		if c.owes == owesRequestHead { // the body comes when its head was answered
			c.owes = owesNothing
			if err := c.send(requestHead(&extproc.CommonResponse{})); err != nil {
				return err
			}
		}
	default:
		c.s.warn("mode", errMode.Error())
		return errMode
	}
	m, err := c.nextBefore(c.deadline)
	if err != nil {
		return err
	}
	switch {
	case m.GetRequestBody() != nil:
		b.rest, b.over = m.GetRequestBody().GetBody(), m.GetRequestBody().GetEndOfStream()
		if buffered {
			b.over, c.owes = true, owesRequestBody
		}
	case m.GetRequestTrailers() != nil:
		b.over, c.trailers = true, true
	default:
		return errOrder
	}
	return nil
}

// Close implements io.Closer.
func (b *upBody) Close() error { return nil }

var errOrder = errors.New("picker: Envoy sent something else than is due")

// nextBefore is next with a deadline; zero = there is none.
func (c *call) nextBefore(deadline time.Time) (*extproc.ProcessingRequest, error) {
	if deadline.IsZero() {
		return c.next(c.ctx)
	}
	ctx, cancel := context.WithDeadlineCause(c.ctx, deadline, os.ErrDeadlineExceeded)
	defer cancel()
	return c.next(ctx)
}
