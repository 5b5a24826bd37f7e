package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"
)

// Outcome is how a request ended for the client.
type Outcome uint8

// Shed is a 429; Failed is any other error, before or within the stream;
// Aborted is a request that the client itself gave up.
const (
	Done Outcome = iota
	Shed
	Failed
	Aborted
)

// String returns done, shed, failed or aborted.
func (o Outcome) String() string {
	return [...]string{"done", "shed", "failed", "aborted"}[o]
}

// Request is one streamed chat completion.
type Request struct {
	Model        string
	PromptTokens int    // sent as four bytes each
	Text         string // sent as the prompt instead; "" = PromptTokens are made up
	MaxTokens    int
	Salt         uint64 // the prompt begins with it, so that no cache knows it; 0 = it does not
	Usage        bool   // ask for the engine's own count
}

// Result is what the client saw of one request.
type Result struct {
	Outcome    Outcome
	Status     int           // 0 when no answer came
	Err        error         // with Failed and Aborted
	Backend    string        // from the response header, if shown
	TTFT       time.Duration // request sent to first token; 0 when none came
	Connect    time.Duration // of TTFT, until there was a connection; 0 = there was one
	Tokens     int           // content events
	Counted    int           // tokens of the answer by the engine's usage; 0 = it told none
	First      int           // of these, those that arrived with the first
	Decode     time.Duration // first token to last token
	RetryAfter time.Duration // with Shed
}

// TPS is the decode speed in tokens/s, and whether it can be told: at least
// five tokens after the first chunk.
func (r Result) TPS() (tps float64, ok bool) {
	if r.Tokens-r.First < 5 || r.Decode <= 0 {
		return 0, false
	}
	return float64(r.Tokens-r.First) / r.Decode.Seconds(), true
}

// Kept reports whether the stream kept a floor: its last token came no later
// than first token + (tokens − first chunk's)/floor + grace.
func (r Result) Kept(floorTPS float64, grace time.Duration) bool {
	allowed := float64(r.Tokens-r.First)/floorTPS + grace.Seconds()
	return r.Decode.Seconds() <= allowed
}

// Client sends requests to one base URL. Safe for concurrent use.
type Client struct {
	BaseURL string       // ends in /v1
	Key     string       // "" = none
	HTTP    *http.Client // required; without a total timeout
}

// errNoDone marks a stream that ended without its last event.
var errNoDone = errors.New("loadgen: stream ended without [DONE]")

// Stream sends req and reads the answer to its end.
func (c *Client) Stream(ctx context.Context, req Request) Result {
	var r Result
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, c.BaseURL+"/chat/completions", bytes.NewReader(body(req)))
	if err != nil {
		return r.fail(ctx, err)
	}
	hr.Header.Set("Content-Type", "application/json")
	hr.Header["Idempotency-Key"] = []string{} // not sent: lets the transport replay on a connection that the engine had closed
	if c.Key != "" {
		hr.Header.Set("Authorization", "Bearer "+c.Key)
	}
	sent := time.Now()
	hr = hr.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			r.Connect = time.Since(sent)
		}
	}}))
	resp, err := c.HTTP.Do(hr)
	if err != nil {
		return r.fail(ctx, err)
	}
	defer resp.Body.Close()
	r.Status = resp.StatusCode
	r.Backend = resp.Header.Get("X-Pacer-Backend")
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		if resp.StatusCode == http.StatusTooManyRequests {
			r.Outcome = Shed
			r.RetryAfter = retryAfter(resp.Header)
			return r
		}
		return r.fail(ctx, errors.New(resp.Status+": "+string(text)))
	}
	return r.read(ctx, resp.Body, sent)
}

// read counts the tokens of the stream.
func (r Result) read(ctx context.Context, body io.Reader, sent time.Time) Result {
	lines := bufio.NewReaderSize(body, 16<<10)
	var first, last time.Time
	done := false
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case isContent(line):
			now := time.Now()
			if first.IsZero() {
				first = now
				r.TTFT = now.Sub(sent)
				r.First = 1
			}
			last = now
			r.Tokens++
		case bytes.HasPrefix(line, []byte("data: [DONE]")):
			done = true
		default:
			r.Counted = max(r.Counted, counted(line))
		}
		if err == nil || errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		r.Decode = last.Sub(first)
		if err == io.EOF && done {
			return r
		}
		if err == io.EOF {
			err = errNoDone
		}
		return r.fail(ctx, err)
	}
}

func (r Result) fail(ctx context.Context, err error) Result {
	r.Outcome, r.Err = Failed, err
	if ctx.Err() != nil {
		r.Outcome = Aborted
	}
	return r
}

// contentNames are the fields of a delta that hold text of the answer.
var contentNames = [][]byte{[]byte(`"content":`), []byte(`"reasoning_content":`), []byte(`"reasoning":`)}

// isContent reports whether line is an event with a non-empty content delta.
func isContent(line []byte) bool {
	for _, name := range contentNames {
		_, after, _ := bytes.Cut(line, name)
		after = bytes.TrimLeft(after, " ")
		if len(after) > 1 && after[0] == '"' && after[1] != '"' {
			return true
		}
	}
	return false
}

// counted returns the completion_tokens that line tells, 0 if none.
func counted(line []byte) int {
	_, after, _ := bytes.Cut(line, []byte(`"completion_tokens":`))
	n := 0
	for _, c := range bytes.TrimLeft(after, " ") {
		if c < '0' || c > '9' || n > 1<<30 {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// body is a chat completion whose prompt has four bytes per token.
func body(req Request) []byte {
	var b bytes.Buffer
	model, err := json.Marshal(req.Model)
	if err != nil {
		panic(err) // a string always has a form
	}
	b.WriteString(`{"model":` + string(model) + `,"stream":true,"max_tokens":` + strconv.Itoa(req.MaxTokens))
	if req.Usage {
		b.WriteString(`,"stream_options":{"include_usage":true}`)
	}
	b.WriteString(`,"messages":[{"role":"user","content":"`)
	if req.Text != "" {
		text, err := json.Marshal(req.Text)
		if err != nil {
			panic(err) // a string always has a form
		}
		b.Write(text[1 : len(text)-1])
	} else {
		b.WriteString(madeUp(req))
	}
	b.WriteString(`"}]}`)
	return b.Bytes()
}

// madeUp is a prompt of as many tokens as are asked for.
func madeUp(req Request) string {
	text := strings.Repeat("word", max(req.PromptTokens, 1))
	if req.Salt == 0 {
		return text
	}
	return (fmt.Sprintf("%016x", req.Salt) + text)[:len(text)]
}

func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.Atoi(h.Get("Retry-After-Ms")); err == nil {
		return time.Duration(ms) * time.Millisecond
	}
	s, err := strconv.ParseFloat(h.Get("Retry-After"), 64)
	if err != nil {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// Wait waits for d, and reports false when ctx ended first.
func Wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
