package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/gateway/limit"
	"github.com/pacer-dev/pacer/internal/clientconn"
	"github.com/pacer-dev/pacer/internal/openai"
	"github.com/pacer-dev/pacer/router"
)

// Conditions without facts.
var (
	errUnknownPath = errors.New("gateway: unknown path")
	errUnserved    = errors.New("gateway: unknown endpoint")
	errWrongMethod = errors.New("gateway: method not allowed")
	errSlowBody    = errors.New("gateway: the request body came too slowly")
	errRatio       = errors.New("gateway: the request body unpacks to too many times its size")
	errOverloaded  = errors.New("gateway: too many requests under way")
	errShareTaken  = errors.New("gateway: the key's requests under way hold its half of limits.buffered")
	errManyBodies  = errors.New("gateway: the key is sending as many bodies at once as one key may")
	errManyFiles   = errors.New("gateway: the client has as many files on their way as one may")
	errNoRoom      = errors.New("gateway: no descriptor or port for another connection")
	errDraining    = errors.New("gateway: shutting down")
	errAccount     = errors.New("gateway: what a backend's account keeps, beyond the key")
	errNoBackend   = errors.New("gateway: no backend in service")
	errFewPlaces   = errors.New("gateway: no route has so many free places")
	errFree        = errors.New("gateway: free is no number of places")
	errPanicked    = errors.New("gateway: a step panicked")
	errClientSlow  = errors.New("gateway: the client did not take the answer")
	errTotal       = errors.New("gateway: the request took longer than allowed")
)

// keyError reports a key that is missing, has expired, or else is unknown.
type keyError struct{ missing, expired bool }

func (e *keyError) Error() string {
	switch {
	case e.missing:
		return "gateway: no API key"
	case e.expired:
		return "gateway: expired API key"
	}
	return "gateway: unknown API key"
}

// bodyTooLargeError reports a body over the limit, in bytes.
type bodyTooLargeError struct{ limit int64 }

func (e *bodyTooLargeError) Error() string {
	return fmt.Sprintf("gateway: request body over %d bytes", e.limit)
}

// bodyError reports a body that could not be read to its end.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "gateway: reading the request body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// encodingError reports a compressed request body.
type encodingError struct{ encoding string }

func (e *encodingError) Error() string {
	return fmt.Sprintf("gateway: content-encoding %.40q", e.encoding)
}

// unknownModelError reports a model that no route names, or one that the key
// may not use: the two look the same.
type unknownModelError struct{ model string }

func (e *unknownModelError) Error() string {
	return fmt.Sprintf("gateway: unknown model %.120q", e.model)
}

// endpointError reports a model none of whose backends speaks the endpoint.
type endpointError struct {
	model string
	path  string // as the client asked
}

func (e *endpointError) Error() string {
	return fmt.Sprintf("gateway: no backend of model %.120q speaks %s", e.model, e.path)
}

// headerError reports a header of ours that is malformed.
type headerError struct{ header, problem string }

func (e *headerError) Error() string { return "gateway: header " + e.header + " " + e.problem }

// permissionError reports that more was asked for than the key allows.
type permissionError struct{ header, allowed string }

func (e *permissionError) Error() string {
	return "gateway: " + e.header + " beyond the key: " + e.allowed
}

// shedError reports that the request was not placed.
type shedError struct{ refusal router.Refusal }

func (e *shedError) Error() string { return "gateway: not placed: " + e.refusal.Reason.String() }

// upstreamError reports that a backend failed before it sent a byte.
type upstreamError struct {
	backend string
	status  int    // what the client is answered: 502, 503 or 504
	problem string // in words that name no backend
	says    openai.Failure
	retry   http.Header // what the backend said of trying again
	err     error       // nil = only the status
}

func (e *upstreamError) Error() string {
	s := "gateway: backend " + e.backend + " " + e.problem
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}
func (e *upstreamError) Unwrap() error { return e.err }

// backendError reports an error answer of a backend that does not explain
// itself in a form that clients can read.
type backendError struct {
	backend string
	status  int
	says    openai.Failure
	retry   http.Header // what it said of trying again
}

func (e *backendError) Error() string {
	return fmt.Sprintf("gateway: backend %s answered %d, in no shape that SDKs read", e.backend, e.status)
}

// cutError reports that an answer broke off after its first byte.
type cutError struct {
	backend string
	err     error
}

func (e *cutError) Error() string {
	return "gateway: backend " + e.backend + " broke off: " + e.err.Error()
}
func (e *cutError) Unwrap() error { return e.err }

// goneError reports that the client went away.
type goneError struct{ err error }

func (e *goneError) Error() string { return "gateway: client gone: " + e.err.Error() }
func (e *goneError) Unwrap() error { return e.err }

// isGone reports whether err says that the client went away.
func isGone(err error) bool {
	if err == nil {
		return false
	}
	var gone *goneError
	return errors.As(err, &gone) || errors.Is(err, context.Canceled)
}

// answer is an error as the client sees it.
type answer struct {
	status           int
	typ, code, param string
	message          string
	retryAfter       time.Duration // 0 = none
	retry            http.Header   // what a backend said of trying again, passed on
	noRetry          bool          // waiting cannot help: SDKs are told not to
}

// statusGone stands in the log for a client that left before an answer; it is
// never sent.
const statusGone = 499

// The types of most errors that the gateway itself finds.
const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// fixedAnswers are those to errors without facts of their own.
var fixedAnswers = []struct {
	err    error
	answer answer
}{
	{errUnknownPath, answer{status: 404, typ: invalidRequest, code: "unknown_url", message: "There is nothing at this address. The base URL ends in /v1."}},
	{errUnserved, answer{status: 404, typ: invalidRequest, code: "unknown_url", message: "This endpoint is not served here."}},
	{errWrongMethod, answer{status: 405, typ: invalidRequest, code: "method_not_allowed", message: "This address does not know that method; see the Allow header."}},
	{errNoSocket, answer{status: 426, typ: invalidRequest, code: "upgrade_required", message: "This endpoint is a WebSocket: connect with ws:// or wss:// over HTTP/1.1."}},
	{errRatio, answer{status: 413, typ: invalidRequest, code: "compression_ratio", message: fmt.Sprintf("The request body unpacks to more than %d times its compressed size. Send it without Content-Encoding.", maxRatio)}},
	{errSlowBody, answer{status: 408, typ: invalidRequest, code: "request_timeout", message: fmt.Sprintf("The request body came too slowly. It has to come with %d KiB/s, and without long breaks. Send it over a faster connection, or send less at once.", bodyRate>>10)}},
	{errNoStore, answer{status: 503, typ: serverError, code: "store_unavailable", message: "Files and batches cannot be reached now. What was stored is not lost; try again.", retryAfter: 5 * time.Second}},
	{errAccount, answer{status: 403, typ: "permission_error", code: "permission_denied", message: "This key may not use what the account of a backend keeps, for other keys use it too. Whoever runs this gateway allows it by allow: { account: true }."}},
	{errOverloaded, answer{status: 503, typ: serverError, code: "gateway_overloaded", message: "The gateway has too many requests under way.", retryAfter: time.Second}},
	{errNoRoom, answer{status: 503, typ: serverError, code: "gateway_overloaded", message: "The gateway has too many requests under way.", retryAfter: time.Second}},
	{errShareTaken, answer{status: 503, typ: serverError, code: "gateway_overloaded", message: "The requests of this key that are under way hold as many bytes as one key may (half of limits.buffered). Send this one when some of them have ended.", retryAfter: time.Second}},
	{errManyBodies, answer{status: 503, typ: serverError, code: "gateway_overloaded", message: "This key is sending as many request bodies at once as one key may (half of limits.streams). Send this one when some of them have arrived.", retryAfter: time.Second}},
	{errManyFiles, answer{status: 503, typ: serverError, code: "gateway_overloaded", message: fmt.Sprintf("This key, or this address, has as many files on their way as one may (%d uploads, and %d that are fetched or begun as batches). Send this one when some of them are through.", mostUploads/2, mostFiles/2), retryAfter: time.Second}},
	{errDraining, answer{status: 503, typ: serverError, code: "draining", message: "This gateway is shutting down.", retryAfter: time.Second}},
	{errFewPlaces, answer{status: 503, typ: serverError, code: "few_places", message: "No route has as many free places."}},
	{errFree, answer{status: 400, typ: "invalid_request_error", code: "invalid_free", message: "free must be a number of places, from 1."}},
	{errNoBackend, answer{status: 503, typ: serverError, code: "no_backend", message: "No backend is in service."}},
	{errTotal, answer{status: 504, typ: "upstream_error", code: "timeout", message: "The answer took longer than the gateway allows."}},
}

// answerFor is, with fixedAnswers, the one table from errors to status codes.
func answerFor(err error) answer {
	var (
		key        *keyError
		tooLarge   *bodyTooLargeError
		body       *bodyError
		encoding   *encodingError
		bad        *openai.BadRequest
		model      *unknownModelError
		header     *headerError
		permission *permissionError
		page       *pageError
		response   *unknownResponseError
		unspoken   *endpointError
		shed       *shedError
		exceeded   *limit.Exceeded
		up         *upstreamError
		plain      *backendError
		gone       *goneError
		poor       *budgetError
	)
	for _, f := range fixedAnswers {
		if errors.Is(err, f.err) {
			return f.answer
		}
	}
	switch {
	case errors.As(err, &key):
		a := answer{status: 401, typ: invalidRequest, code: "invalid_api_key", message: "Incorrect API key provided."}
		switch {
		case key.missing:
			a.message = "No API key provided. Send it as Authorization: Bearer KEY."
		case key.expired:
			a.message = "This API key has expired. Ask whoever runs this gateway for another one."
		}
		return a
	case errors.As(err, &tooLarge):
		return answer{status: 413, typ: invalidRequest, code: "request_too_large", message: fmt.Sprintf("The request body is larger than %d bytes.", tooLarge.limit)}
	case errors.As(err, &encoding):
		return answer{status: 415, typ: invalidRequest, code: "unsupported_encoding", message: "The request body may be compressed with gzip alone; else send it without Content-Encoding."}
	case errors.As(err, &bad) && bad.Code == notThere:
		return answer{status: 404, typ: invalidRequest, code: bad.Code, param: bad.Param, message: bad.Message}
	case errors.As(err, &bad):
		return answer{status: 400, typ: invalidRequest, code: bad.Code, param: bad.Param, message: bad.Message}
	case errors.As(err, &gone), errors.Is(err, context.Canceled):
		return answer{status: statusGone}
	case errors.As(err, &body):
		a := answer{status: 400, typ: invalidRequest, code: "unreadable_body", message: "The request body could not be read to its end."}
		if noGzip(body) {
			a.message = "The request body is no whole gzip, as its Content-Encoding says it is."
		}
		return a
	case errors.As(err, &model):
		return answer{status: 404, typ: invalidRequest, code: "model_not_found", param: "model", message: fmt.Sprintf("The model %.120q does not exist or you do not have access to it.", model.model)}
	case errors.As(err, &response):
		// That it is another's, or was never there, looks the same.
		const why = " Answers are found only by the gateway that passed them on, for a day after their last use; another replica does not know them."
		if response.previous {
			return answer{status: 404, typ: invalidRequest, code: "previous_response_not_found", param: "previous_response_id", message: fmt.Sprintf("Previous response with id %.120q not found.", response.id) + why}
		}
		return answer{status: 404, typ: invalidRequest, code: "response_not_found", param: "response_id", message: fmt.Sprintf("Response with id %.120q not found.", response.id) + why}
	case errors.As(err, &unspoken):
		return answer{status: 400, typ: invalidRequest, code: "unsupported_endpoint", param: "model", message: fmt.Sprintf("The model %.120q is not served at %s: its backends speak another API, such as /v1/messages.", unspoken.model, unspoken.path)}
	case errors.As(err, &header):
		return answer{status: 400, typ: invalidRequest, code: "invalid_header", param: header.header, message: "Header " + header.header + ": " + header.problem + "."}
	case errors.As(err, &permission):
		return answer{status: 403, typ: "permission_error", code: "permission_denied", param: permission.header, message: "Header " + permission.header + " asks for more than this key may have (" + permission.allowed + ")."}
	case errors.As(err, &page):
		return answer{status: 403, typ: "permission_error", code: "page_not_allowed", param: page.header, message: fmt.Sprintf("The gateway has no keys, so of web pages it serves only its own and those that its configuration names. This one came with %s: %.200s. If it is yours, add %s to the configuration.", page.header, page.value, page.add)}
	case errors.As(err, &poor):
		return poor.answer()
	case errors.As(err, &exceeded):
		a := answer{status: 429, typ: "rate_limit_error", code: "rate_limit_exceeded", message: "This key's limit of " + exceeded.Error() + " is reached.", retryAfter: exceeded.RetryAfter}
		if exceeded.Never > 0 {
			a.noRetry = true
			a.message = fmt.Sprintf("This request has %d sequences (n, best_of, or prompts), and this key may have %d at once. Waiting does not help: ask for fewer.", exceeded.Never, exceeded.Limit)
		}
		return a
	case errors.As(err, &shed):
		return shedAnswer(shed)
	case errors.As(err, &plain):
		return answer{status: plain.status, retry: plain.retry}.saying(fmt.Sprintf("The backend answered %d", plain.status), " and did not say why", &plain.says)
	case errors.As(err, &up):
		return answer{status: up.status, retry: up.retry}.saying("The backend "+up.problem, "", &up.says)
	}
	return answer{status: 500, typ: serverError, code: "internal_error", message: "The gateway failed on this request."}
}

// saying returns a with what a backend says of its error behind begin, or, if it
// has no words, with without.
func (a answer) saying(begin, without string, f *openai.Failure) answer {
	a.typ, a.param = cmp.Or(f.Type, "upstream_error"), f.Param
	a.code = cmp.Or(f.Code, upstreamCode(a.status))
	a.message = begin + without + "."
	if f.Message != "" {
		a.message = begin + ": " + f.Message
	}
	return a
}

func upstreamCode(status int) string {
	switch status {
	case http.StatusServiceUnavailable:
		return "upstream_unavailable"
	case http.StatusGatewayTimeout:
		return "upstream_timeout"
	}
	return "upstream_failed"
}

// shedAnswer says in plain words why a request was refused and what its sender
// can do.
func shedAnswer(e *shedError) answer {
	r := e.refusal
	a := answer{status: 429, typ: "rate_limit_error", code: r.Reason.String(), retryAfter: r.RetryAfter}
	best := ""
	if r.Best > 0 && !math.IsInf(r.Best, 1) && (r.Floor <= 0 || r.Best < r.Floor) { // else no speed is missing
		best = fmt.Sprintf(" (best on offer: %.1f)", r.Best)
	}
	switch r.Reason {
	case router.ShedFloor:
		if r.RetryAfter <= 0 {
			a.message = "This request asks for more sequences at once (n, best_of, or prompts) than any backend of this model takes. Waiting does not help: ask for fewer."
			a.noRetry = true
			break
		}
		a.message = "Every backend of this model is full: one more request would fall below its floor, or push running ones below theirs"
		if r.Floor > 0 {
			a.message = fmt.Sprintf("No backend of this model can give one more user %s tokens/s now, or only at the cost of those already running%s", formatFloat(r.Floor), best)
		}
		a.message += ". Retry after the time given, ask for less with x-pacer-min-tps, or send it with x-pacer-class: batch."
	case router.ShedUnattainable:
		a.noRetry, a.retryAfter = true, 0
		if r.Sequences > 1 {
			a.message = fmt.Sprintf("No backend of this model gives %s tokens/s to each of %d sequences at once (n, best_of, or prompts), even when idle%s. Waiting does not help: ask for fewer, or for less with x-pacer-min-tps.", formatFloat(r.Floor), r.Sequences, best)
			break
		}
		a.message = fmt.Sprintf("No backend of this model gives %s tokens/s even when idle%s. Waiting does not help: ask for less with x-pacer-min-tps, or lower the route's min_tps.", formatFloat(r.Floor), best)
	case router.ShedTTFT:
		a.message = "The first token would come later than max_ttft allows. Retry after the time given, or allow more with x-pacer-max-ttft-ms."
	case router.ShedQueueFull:
		a.message = "The waiting line of this model is full. Retry after the time given."
	case router.ShedTimeout:
		a.message = "The request waited in line as long as allowed and no place came free" + best + ". Retry after the time given."
	case router.NoBackend:
		a = answerFor(errNoBackend)
		a.retryAfter = r.RetryAfter
		if a.retryAfter <= 0 {
			a.retryAfter = 5 * time.Second
		}
		a.message = "No backend of this model is in service."
	}
	if r.NoPlace {
		// A library would come back again and again, for places that are all taken.
		a.noRetry = true
		a.message = strings.Replace(a.message, "Retry after the time given", "Every place that comes free until the time given is promised: do not retry before", 1)
	}
	return a
}

// write sends the answer to r in the shape that SDKs of its endpoint read. The
// id header is already there.
func (a answer) write(w http.ResponseWriter, r *http.Request) int {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if a.noRetry {
		h.Set("X-Should-Retry", "false")
	}
	switch {
	case a.retryAfter > 0:
		// SDKs ignore what is above a minute.
		ms := min(max(a.retryAfter.Milliseconds(), 1), 60_000)
		h.Set("Retry-After", strconv.FormatInt((ms+999)/1000, 10))
		h.Set("Retry-After-Ms", strconv.FormatInt(ms, 10))
	case !a.noRetry:
		maps.Copy(h, a.retry)
	}
	var body []byte
	if ofGoogle(r) {
		body = a.google()
	} else if r.URL.Path == "/v2/chat" {
		body = openai.CohereErrorBody(a.message, a.typ, a.param, a.code, requestID(r.Context()))
	} else if ofAnthropic(r) {
		body = openai.MessagesErrorBody(a.message, a.status, a.param, a.code, requestID(r.Context()))
	} else {
		body = openai.ErrorBody(a.message, a.typ, a.param, a.code)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	clientconn.TakeRest(w, r)
	w.WriteHeader(a.status)
	n, _ := w.Write(body) // the client's loss if it is gone
	return n
}
