package providers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pacer-dev/pacer/internal/memnet"
	"github.com/pacer-dev/pacer/internal/must"
)

// inMemory is a body.
type inMemory []byte

func (b inMemory) Len() int64                   { return int64(len(b)) }
func (b inMemory) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }

// client is what speaks HTTP/1.1 in these tests.
var client = flag.String("client", ClientOwn, "own or net/http")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine is a real HTTP server in memory, and a Backend for it.
type engine struct {
	*Backend
	dials atomic.Int32
}

// serve starts handler as http://engine/v1. It belongs in a bubble: when the
// test ends nothing may be left running.
func serve(t *testing.T, o Options, handler http.HandlerFunc) *engine {
	t.Helper()
	network, e := &memnet.Network{}, &engine{}
	l, err := network.Listen("engine:80")
	must.Do(t, err)
	server := &http.Server{Handler: handler}
	go server.Serve(l)
	o.Client, o.Name, o.BaseURL = *client, "engine", cmp.Or(o.BaseURL, "http://engine/v1/")
	o.Dial = func(ctx context.Context, n, addr string) (net.Conn, error) {
		e.dials.Add(1)
		return network.Dial(ctx, n, addr)
	}
	if e.Backend, err = New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		server.Close()
	})
	return e
}

// ask sends one call and returns the whole answer.
func (e *engine) ask(c Call) (status int, body string, err error) {
	if c.Path == "" {
		c.Path = "/chat/completions"
	}
	resp, err := e.Send(context.Background(), c)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

func TestWhatGoesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *http.Request
		var body string
		e := serve(t, Options{
			APIKey:  "sk-backend",
			Headers: http.Header{"X-Tenant": {"a"}, "openai-organization": {"ours"}},
		}, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			got, body = r, string(b)
		})
		header := http.Header{
			"Connection": {"keep-alive, X-Once", "X-Twice"}, "X-Once": {"1"}, "X-Twice": {"2"},
			"Keep-Alive": {"1"}, "Te": {"trailers"}, "Transfer-Encoding": {"chunked"}, "Upgrade": {"h2c"}, "Trailer": {"X"},
			"Proxy-Authorization": {"Basic x"}, "Expect": {"100-continue"},
			"Authorization": {"Bearer client"}, "X-Api-Key": {"client"}, "Api-Key": {"client"}, "api-key": {"client"}, "Cookie": {"session=1"},
			"Accept-Encoding": {"gzip"}, "Content-Length": {"9999"}, "Host": {"client.example"},
			"X-Pacer-Min-Tps": {"30"}, "X-Request-Id": {"client's"},
			"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"OpenAI/Python"}, "Traceparent": {"00-1"},
			"Openai-Organization": {"theirs"}, "Openai-Project": {"p"}, "X-Stainless-Retry-Count": {"0"}, "X-Custom": {"a", "b"},
		}
		before := header.Clone()
		status, _, err := e.ask(Call{Header: header, Body: inMemory(`{"model":"m"}`), RequestID: "req-1"})
		if err != nil || status != 200 {
			t.Fatalf("status %d, error %v", status, err)
		}
		want := http.Header{
			"Authorization": {"Bearer sk-backend"}, "X-Tenant": {"a"}, "Openai-Organization": {"ours"},
			"Accept-Encoding": {"identity"}, "Content-Length": {"13"}, "X-Request-Id": {"req-1"},
			"Content-Type": {"application/json; charset=utf-8"}, "User-Agent": {"OpenAI/Python"}, "Traceparent": {"00-1"},
			"Openai-Project": {"p"}, "X-Stainless-Retry-Count": {"0"}, "X-Custom": {"a", "b"},
		}
		for name, values := range want {
			if !slices.Equal(got.Header[name], values) {
				t.Errorf("%s went up as %q, want %q", name, got.Header[name], values)
			}
		}
		for name, values := range got.Header {
			if want[name] == nil {
				t.Errorf("%s: %q went up, want it dropped", name, values)
			}
		}
		if got.Method != "POST" || got.URL.Path != "/v1/chat/completions" || got.Host != "engine" || got.Proto != "HTTP/1.1" {
			t.Errorf("%s %s to %s in %s", got.Method, got.URL, got.Host, got.Proto)
		}
		if body != `{"model":"m"}` || got.ContentLength != 13 {
			t.Errorf("body %q of declared length %d", body, got.ContentLength)
		}
		if fmt.Sprint(header) != fmt.Sprint(before) {
			t.Error("the client's headers were changed")
		}
	})
}

func TestWhatGoesUpByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got http.Header
		e := serve(t, Options{}, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
		if _, _, err := e.ask(Call{Header: http.Header{"Authorization": {"Bearer client"}, "Idempotency-Key": {"k"}}}); err != nil {
			t.Fatal(err)
		}
		want := http.Header{
			"Accept-Encoding": {"identity"}, "Content-Length": {"0"}, "Content-Type": {"application/json"},
			"User-Agent": {"pacer"}, "Idempotency-Key": {"k"},
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
	})
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		e := serve(t, Options{APIKey: "k"}, func(w http.ResponseWriter, r *http.Request) {
			asked++
			http.Redirect(w, r, "http://elsewhere/", http.StatusTemporaryRedirect)
		})
		status, _, err := e.ask(Call{Body: inMemory("{}")})
		if status != http.StatusTemporaryRedirect || err != nil || asked != 1 || e.dials.Load() != 1 {
			t.Errorf("status %d, error %v, asked %d times over %d connections; want the redirect itself", status, err, asked, e.dials.Load())
		}
	})
}

// An engine may send its headers only when the request gets a slot.
func TestHeadersMayTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := serve(t, Options{}, func(http.ResponseWriter, *http.Request) { <-time.After(20 * time.Minute) })
		start := time.Now()
		if _, _, err := e.ask(Call{}); err != nil || time.Since(start) != 20*time.Minute {
			t.Errorf("error %v after %v, want an answer after 20m", err, time.Since(start))
		}
	})
}

func TestConnectionsAreKeptForLessThanFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := serve(t, Options{}, func(http.ResponseWriter, *http.Request) { <-time.After(time.Second) })
		wave := func() {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if _, _, err := e.ask(Call{}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		wave()
		<-time.After(3 * time.Second)
		wave()
		if n := e.dials.Load(); n != 100 {
			t.Errorf("%d connections for two waves of 100 requests 3s apart, want 100", n)
		}
		<-time.After(4500 * time.Millisecond)
		wave()
		if n := e.dials.Load(); n != 200 {
			t.Errorf("%d connections, want 100 more after 4.5s of silence", n)
		}
	})
}

func TestCancelReachesTheEngine(t *testing.T) {
	for _, phase := range []string{"headers", "body"} {
		t.Run(phase, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sawCancel atomic.Bool
				e := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body) // only then does the server see a client leave
					if phase == "body" {
						io.WriteString(w, "data: {}\n\n")
						w.(http.Flusher).Flush()
					}
					<-r.Context().Done()
					sawCancel.Store(true)
				})
				ctx, cancel := context.WithCancel(context.Background())
				time.AfterFunc(time.Minute, cancel)
				start := time.Now()
				resp, err := e.Send(ctx, Call{Path: "/x", Body: inMemory("{}")})
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				} else {
					var send *SendError
					if !errors.As(err, &send) || send.Phase != Headers {
						t.Errorf("error %#v, want one of the headers phase", err)
					}
				}
				if !errors.Is(err, context.Canceled) || time.Since(start) != time.Minute {
					t.Errorf("error %v after %v, want the cancel after 1m", err, time.Since(start))
				}
				synctest.Wait()
				if !sawCancel.Load() {
					t.Error("the engine goes on")
				}
			})
		})
	}
}

// The cause of a cancel is what Send reports: the caller tells a client that
// left from a deadline by it.
func TestTheCauseOfACancelIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := serve(t, Options{}, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		cause := errors.New("no first byte in time")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(cause) })
		if _, err := e.Send(ctx, Call{}); !errors.Is(err, cause) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, cause)
		}
	})
}

func TestConnectErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		dial   func(context.Context, string, string) (net.Conn, error)
		after  time.Duration
		reason string
	}{
		{"refused", (&memnet.Network{}).Dial, 0, "could not be reached"},
		{"no such host", func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "secret-host", IsNotFound: true}
		}, 0, "has a name that does not resolve"},
		{"no answer", func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, 3 * time.Second, "did not accept the connection in time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, err := New(Options{Client: *client, Name: "b", BaseURL: "http://secret-host", Dial: tt.dial, ConnectTimeout: 3 * time.Second})
				must.Do(t, err)
				start := time.Now()
				_, err = b.Send(context.Background(), Call{Path: "/x"})
				var send *SendError
				if !errors.As(err, &send) {
					t.Fatalf("got %v, want a *SendError", err)
				}
				if send.Phase != Connect || time.Since(start) != tt.after {
					t.Errorf("phase %v after %v, want connect after %v", send.Phase, time.Since(start), tt.after)
				}
				if send.Reason() != tt.reason {
					t.Errorf("reason %q, want %q", send.Reason(), tt.reason)
				}
			})
		})
	}
}
