package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/config"
)

// upload is a form with a file.
func upload(purpose, content string) (body, kind string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", purpose)
	part, _ := w.CreateFormFile("file", "in.jsonl")
	_, _ = part.Write([]byte(content))
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

func (h *house) fields(r reply) map[string]any {
	h.t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		h.t.Fatalf("got %d %s", r.status, r.body)
	}
	return v
}

// A file of requests is uploaded, done in class batch as its owner, and its answers
// fetched; what is refused for want of room is sent again.
func TestBatchJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		engine := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			switch n := calls.Add(1); {
			case n == 2:
				w.Header().Set("Retry-After", "3")
				w.WriteHeader(429)
				_, _ = io.WriteString(w, `{"error":{"message":"full"}}`)
			case bytes.Contains(body, []byte("wrong")):
				w.WriteHeader(400)
				_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
			default:
				_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
			}
		})
		c := settings("a")
		c.Keys = []config.Key{key("mobile", "sk-right"), key("other", "sk-other")}
		c.Batches = config.Batches{Slots: 4, Bytes: 1 << 20, Keep: time.Hour}
		store := batch.NewMemory(1<<20, time.Hour)
		h := openWith(t, c, map[string]http.Handler{"a": engine}, houseOptions{batches: store})
		right := []string{"Authorization", "Bearer sk-right"}

		var lines strings.Builder
		for i := range 9 {
			text := "x"
			if i == 7 {
				text = "wrong"
			}
			fmt.Fprintf(&lines, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"chat","messages":[{"role":"user","content":%q}]}}`+"\n", i, text)
		}
		fmt.Fprintf(&lines, `{"custom_id":"c9","method":"POST","url":"/v1/chat/completions","body":{"model":"chat","stream":true}}`+"\n")
		body, kind := upload("batch", lines.String())
		r := h.post("/v1/files", body, append(right, "Content-Type", kind)...)
		file := h.fields(r)
		if r.status != 200 || file["object"] != "file" || file["bytes"] != float64(lines.Len()) || file["purpose"] != "batch" {
			t.Fatalf("got %d %s", r.status, r.body)
		}
		ask := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","metadata":{"team":"x"}}`, file["id"])
		r = h.post("/v1/batches", ask, right...)
		job := h.fields(r)
		if r.status != 200 || job["status"] != "in_progress" || job["object"] != "batch" {
			t.Fatalf("got %d %s", r.status, r.body)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		runner := batch.NewRunner(batch.Options{Store: store, Serve: h.gateway.ServeLine, Slots: 4})
		go func() { defer close(ended); _ = runner.Run(ctx) }()
		time.Sleep(time.Minute)
		job = h.fields(h.do(h.request("GET", fmt.Sprint("/v1/batches/", job["id"]), "", right...)))
		counts, _ := job["request_counts"].(map[string]any)
		if job["status"] != "completed" || counts["completed"] != 8.0 || counts["failed"] != 2.0 || counts["total"] != 10.0 {
			t.Fatalf("got %v", job)
		}
		out := h.do(h.request("GET", fmt.Sprintf("/v1/files/%v/content", job["output_file_id"]), "", right...))
		if n := strings.Count(out.body, `"status_code":200`); out.status != 200 || n != 8 || !strings.Contains(out.body, `"custom_id":"c0"`) {
			t.Errorf("got %d with %d answers: %s", out.status, n, out.body)
		}
		bad := h.do(h.request("GET", fmt.Sprintf("/v1/files/%v/content", job["error_file_id"]), "", right...))
		if !strings.Contains(bad.body, `"custom_id":"c7"`) || !strings.Contains(bad.body, "stream must be false") {
			t.Errorf("got %s", bad.body)
		}
		// Another key sees none of it.
		for _, path := range []string{fmt.Sprint("/v1/batches/", job["id"]), fmt.Sprint("/v1/files/", file["id"]), fmt.Sprintf("/v1/files/%v/content", job["output_file_id"])} {
			if r := h.do(h.request("GET", path, "", "Authorization", "Bearer sk-other")); r.status != 404 {
				t.Errorf("%s: another key got %d", path, r.status)
			}
		}
		if list := h.fields(h.do(h.request("GET", "/v1/batches", "", "Authorization", "Bearer sk-other"))); len(list["data"].([]any)) != 0 {
			t.Errorf("another key lists %v", list["data"])
		}
		if list := h.fields(h.do(h.request("GET", "/v1/batches?limit=1", "", right...))); len(list["data"].([]any)) != 1 || list["has_more"] != false {
			t.Errorf("got %v", list)
		}
		if s := h.metrics.Route("chat"); s.Missed != 0 {
			t.Errorf("a batch missed a floor: %+v", s)
		}
		stop()
		<-ended
	})
}

func TestBatchRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := settings("a")
		c.Keys = []config.Key{key("mobile", "sk-right")}
		c.Batches = config.Batches{Slots: 4, Bytes: 200, Keep: time.Hour}
		c.Limits.Body = 1000
		h := openWith(t, c, map[string]http.Handler{"a": echo("application/json", `{}`)}, houseOptions{batches: batch.NewMemory(200, time.Hour)})
		right := []string{"Authorization", "Bearer sk-right"}
		send := func(purpose, content string) reply {
			body, kind := upload(purpose, content)
			return h.post("/v1/files", body, append(right, "Content-Type", kind)...)
		}
		bad := h.fields(send("batch", "{}"))["id"]
		for name, x := range map[string]struct {
			r      reply
			status int
			says   string
		}{
			"no key":             {h.post("/v1/files", "x"), 401, "key"},
			"no form":            {h.post("/v1/files", "{}", right...), 400, "multipart"},
			"another purpose":    {send("fine-tune", "x"), 400, "purpose"},
			"a file too large":   {send("batch", strings.Repeat("x", 2000)), 413, "larger"},
			"no room":            {send("batch", strings.Repeat("x", 199)), 400, "room"},
			"no such file":       {h.do(h.request("GET", "/v1/files/file-x", "", right...)), 404, "not_found"},
			"no such output":     {h.do(h.request("GET", "/v1/files/file-batch_x-output/content", "", right...)), 404, "not_found"},
			"no such batch":      {h.post("/v1/batches/batch_x/cancel", "", right...), 404, "not_found"},
			"a batch of no file": {h.post("/v1/batches", `{"input_file_id":"x","endpoint":"/v1/embeddings","completion_window":"24h"}`, right...), 400, "input_file_id"},
			"another endpoint":   {h.post("/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/files","completion_window":"24h"}`, bad), right...), 400, "endpoint"},
			"another window":     {h.post("/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"48h"}`, bad), right...), 400, "completion_window"},
			"no JSON":            {h.post("/v1/batches", "x", right...), 400, "JSON"},
			"another method":     {h.do(h.request("PUT", "/v1/batches", "", right...)), 405, "method"},
		} {
			if x.r.status != x.status || !strings.Contains(x.r.body, x.says) {
				t.Errorf("%s: got %d %s", name, x.r.status, x.r.body)
			}
		}
		r := h.post("/v1/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h"}`, bad), right...)
		if job := h.fields(r); job["status"] != "failed" || job["errors"] == nil {
			t.Errorf("a file that is no list of requests: %s", r.body)
		}
		if r := h.do(h.request("DELETE", fmt.Sprint("/v1/files/", bad), "", right...)); r.status != 200 || !strings.Contains(r.body, `"deleted":true`) {
			t.Errorf("got %d %s", r.status, r.body)
		}
	})
}
