package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

// fileHouse serves files to the keys one and other.
func fileHouse(t *testing.T) *house {
	c := settings("a")
	c.Keys = []config.Key{key("one", "sk-one"), key("other", "sk-other")}
	c.Batches = config.Batches{Slots: 4, Bytes: 64 << 20, Keep: time.Hour}
	h := openWith(t, c, map[string]http.Handler{"a": echo("application/json", `{}`)}, houseOptions{batches: batch.NewMemory(64<<20, time.Hour)})
	t.Cleanup(h.idle)
	return h
}

func (h *house) store(secret, content string) reply {
	body, kind := upload("batch", content)
	return h.post("/v1/files", body, "Authorization", "Bearer "+secret, "Content-Type", kind)
}

func (h *house) fetch(secret, id string) reply {
	return h.do(h.request("GET", "/v1/files/"+id+"/content", "", "Authorization", "Bearer "+secret))
}

// begin asks on a connection of its own, which it returns with the reader of the answer.
func (h *house) begin(head string) (io.WriteCloser, *bufio.Reader) {
	c := must.Get(h.net.Dial(context.Background(), "tcp", "gateway:80"))(h.t)
	_ = must.Get(io.WriteString(c, head))(h.t)
	return c, bufio.NewReader(c)
}

// A key that has uploads, or fetches, which do not come on leaves half of the places to
// the others, and is told so.
func TestAKeyLeavesPlacesForFilesToOthers(t *testing.T) {
	bubble(t, "uploads", func(t *testing.T) {
		h := fileHouse(t)
		for range mostUploads {
			c, answer := h.begin("POST /v1/files HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer sk-one\r\nContent-Length: 1000\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n")
			defer c.Close()
			go io.Copy(io.Discard, answer) //nolint:errcheck // it ends with the connection
		}
		synctest.Wait()
		if r := h.store("sk-one", input); r.status != 503 || !strings.Contains(r.body, "files on their way") {
			t.Errorf("one upload more of the same key: got %d %s", r.status, r.body)
		}
		if r := h.store("sk-other", input); r.status != 200 {
			t.Errorf("an upload of another key: got %d %s", r.status, r.body)
		}
	})
	bubble(t, "fetches", func(t *testing.T) {
		h := fileHouse(t)
		id := h.fields(h.store("sk-one", strings.Repeat("x", 1<<20)))["id"]
		small := h.fields(h.store("sk-other", input))["id"]
		for range mostFiles {
			c, _ := h.begin(fmt.Sprintf("GET /v1/files/%v/content HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer sk-one\r\n\r\n", id))
			defer c.Close()
		}
		synctest.Wait()
		if r := h.fetch("sk-one", id.(string)); r.status != 503 || !strings.Contains(r.body, "files on their way") {
			t.Errorf("one fetch more of the same key: got %d", r.status)
		}
		if r := h.fetch("sk-other", small.(string)); r.status != 200 || r.body != input {
			t.Errorf("a fetch of another key: got %d %s", r.status, r.body)
		}
		if r := h.post("/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h"}`, small), "Authorization", "Bearer sk-other"); r.status != 200 {
			t.Errorf("a batch of another key: got %d %s", r.status, r.body)
		}
	})
}

// What came of a job is told and sent whatever places are taken, unless the job's file is
// held to name lines that nobody came to do.
func TestOutputsTakeNoPlaceForFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fileHouse(t)
		ctx, store, now := t.Context(), h.gateway.batches, time.Now()
		must.Do(t, store.AddJob(ctx, batch.Job{ID: "batch_a", Owner: "one", Input: "none", Total: 2, Created: now, Expires: now.Add(time.Hour)}))
		for _, c := range must.Get(store.Claim(ctx, now, now.Add(time.Minute), 1, false))(t) {
			must.Do(t, store.Done(ctx, c, now, true, []byte(`{"response":{"status_code":200,"body":{}}}`)))
		}
		must.Get(store.Cancel(ctx, "batch_a", now))(t)
		for range mostFiles / 2 {
			must.Get(h.gateway.fileRoom.whole.take("one", false))(t)
		}
		for path, want := range map[string]int{
			"file-batch_a" + outputEnd: 503, "file-batch_a" + outputEnd + "/content": 200,
			"file-batch_a" + errorsEnd: 503, "file-batch_a" + errorsEnd + "/content": 503,
		} {
			if r := h.do(h.request("GET", "/v1/files/"+path, "", "Authorization", "Bearer sk-one")); r.status != want {
				t.Errorf("%s: got %d %s, want %d", path, r.status, r.body, want)
			}
		}
	})
}

// An upload that comes on is answered, however long it takes.
func TestALongUploadIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := fileHouse(t)
		body, kind := upload("batch", strings.Repeat("x", 1<<20))
		c, answer := h.begin(fmt.Sprintf("POST /v1/files HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer sk-one\r\nContent-Length: %d\r\nContent-Type: %s\r\n\r\n", len(body), kind))
		defer c.Close()
		for ; len(body) > 0; body = body[min(len(body), 64<<10):] {
			time.Sleep(10 * time.Second)
			_ = must.Get(io.WriteString(c, body[:min(len(body), 64<<10)]))(t)
		}
		if resp := must.Get(http.ReadResponse(answer, nil))(t); resp.StatusCode != 200 {
			t.Errorf("got %d", resp.StatusCode)
		}
	})
}

// An upload of which a byte comes now and then, and a fetch that is taken as slowly, are
// ended.
func TestSlowFilesAreEnded(t *testing.T) {
	bubble(t, "an upload", func(t *testing.T) {
		h := fileHouse(t)
		c, answer := h.begin("POST /v1/files HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer sk-one\r\nContent-Length: 1000\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n")
		defer c.Close()
		ended := make(chan int, 1)
		go func() {
			resp, err := http.ReadResponse(answer, nil)
			if err != nil {
				ended <- 0
				return
			}
			ended <- resp.StatusCode
		}()
		begun := time.Now()
		for range 40 { // ten minutes
			if _, err := io.WriteString(c, "-"); err != nil {
				break
			}
			time.Sleep(15 * time.Second)
			select {
			case status := <-ended:
				if took := time.Since(begun); status != 408 || took > time.Minute {
					t.Errorf("got %d after %v, want 408 within a minute", status, took)
				}
				return
			default:
			}
		}
		t.Error("ten minutes of a byte each 15 s are an upload still")
	})
	bubble(t, "a fetch", func(t *testing.T) {
		h := fileHouse(t)
		const size = 1 << 20
		id := h.fields(h.store("sk-one", strings.Repeat("x", size)))["id"]
		c, answer := h.begin(fmt.Sprintf("GET /v1/files/%v/content HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer sk-one\r\n\r\n", id))
		defer c.Close()
		resp := must.Get(http.ReadResponse(answer, nil))(t)
		got := int64(0)
		for got < size {
			n, err := io.CopyN(io.Discard, resp.Body, 64<<10) // in less than the time for a write
			got += n
			if err != nil {
				break
			}
			time.Sleep(25 * time.Second)
		}
		if got == size {
			t.Errorf("a client that takes 64 KiB in 25 s got all of %d bytes", size)
		}
	})
}

// Without keys an address stands for a client, of IPv6 its network; a key that is alone
// shares with nobody.
func TestWhoSharesThePlacesForFiles(t *testing.T) {
	who := func(keys, remote string) (string, bool) {
		p := &setup{conf: &config.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}}}
		for _, name := range strings.Fields(keys) {
			p.tenants = append(p.tenants, &tenant{name: name})
		}
		return p.sharer(&http.Request{RemoteAddr: "10.0.0.1:5", Header: http.Header{"X-Forwarded-For": {remote}}}, &tenant{name: "k"})
	}
	for _, x := range []struct {
		keys   string
		remote string
		who    string
		alone  bool
	}{
		{"", "192.0.2.7", "192.0.2.7", false},
		{"", "2001:db8::7", "2001:db8::/64", false},
		{"", "2001:db8::8", "2001:db8::/64", false},
		{"k", "192.0.2.7", "k", true},
		{"k k", "192.0.2.7", "k", true}, // it is rotated
		{"k l", "192.0.2.7", "k", false},
	} {
		if got, alone := who(x.keys, x.remote); got != x.who || alone != x.alone {
			t.Errorf("keys %q, from %s: got %q, %v; want %q, %v", x.keys, x.remote, got, alone, x.who, x.alone)
		}
	}
	h := halves{most: 4}
	_, _ = h.take("a", true)
	giveBack, _ := h.take("a", true)
	if _, err := h.take("a", false); !errors.Is(err, errManyFiles) {
		t.Errorf("beyond the half: %v", err)
	}
	for range 2 {
		must.Get(h.take("a", true))(t)
	}
	if _, err := h.take("b", false); !errors.Is(err, errOverloaded) {
		t.Errorf("beyond all: %v", err)
	}
	giveBack()
	must.Get(h.take("b", false))(t)
}
