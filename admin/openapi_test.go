package admin

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/history"
	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// described returns the document as the port serves it, made strict: nothing may
// be in an object that is not in its schema.
func described(t *testing.T, w *world) map[string]any {
	t.Helper()
	doc := decode[map[string]any](t, w.get("/api/openapi.json"))
	for _, schema := range at(doc, "components", "schemas") {
		schema.(map[string]any)["additionalProperties"] = false
	}
	return doc
}

func at(doc map[string]any, path ...string) map[string]any {
	for _, name := range path {
		doc, _ = doc[name].(map[string]any)
	}
	return doc
}

// schemaOf is the schema of a JSON answer.
func schemaOf(t *testing.T, doc map[string]any, path, method, status string) *jsonschema.Schema {
	t.Helper()
	schema := at(doc, "paths", path, method, "responses", status, "content", "application/json", "schema")
	if events := at(doc, "paths", path, method, "responses", status, "content", "text/event-stream", "schema", "contentSchema"); events != nil {
		schema = events
	}
	ref, ok := schema["$ref"].(string)
	if !ok {
		t.Fatalf("%s %s: no schema of the answer with status %s", method, path, status)
	}
	text := must.Get(json.Marshal(doc))(t)
	c := jsonschema.NewCompiler()
	c.AssertFormat = true
	must.Do(t, c.AddResource("mem:///openapi.json", bytes.NewReader(text)))
	return c.MustCompile("mem:///openapi.json" + ref)
}

func validate(t *testing.T, schema *jsonschema.Schema, of string, text []byte) {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v in %.300s", of, err, text)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s is not as /api/openapi.json says: %#v\n%.2000s", of, err, text)
	}
}

// What the document describes is there, and what is there is described, but
// for what is not JSON.
func TestOpenAPIHasEveryPath(t *testing.T) {
	w := newWorld(t)
	var inDocument []string
	for path, of := range at(described(t, w), "paths") {
		for method := range of.(map[string]any) {
			inDocument = append(inDocument, strings.ToUpper(method)+" "+path)
		}
	}
	var served []string
	err := chi.Walk(w.handler.(chi.Routes), func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.HasPrefix(path, "/api/") {
			served = append(served, method+" "+path)
		}
		return nil
	})
	must.Do(t, err)
	slices.Sort(inDocument)
	slices.Sort(served)
	if !slices.Equal(inDocument, served) || len(served) < 8 {
		t.Errorf("described: %q\nserved:    %q", inDocument, served)
	}
}

// busy is a world that has something in every field of its answers.
func busy(t *testing.T) *world {
	w := newWorld(t)
	w.occupy(t, 2, 5)
	now := time.Now()
	for i := range 2 {
		w.router.Update(now, router.EngineLoad{Backend: "h200", Running: 16, Waiting: 4, At: now.Add(time.Duration(i-2) * time.Second)})
	}
	w.watch.Note(now, "start", "started")
	bad := history.Snapshot{
		Store:    history.Store{Shared: true},
		Backends: []history.Backend{{Name: "h200", Health: history.IsDown, BreakerOpen: true}},
		Routes:   []history.Route{{Name: "chat", Floor: 30, Best: 20, Unattainable: true, Backends: []string{"h200", "l40s"}}},
	}
	for range 5 {
		w.watch.Tick(now, bad)
	}
	w.errors = map[profiles.Target]LastError{h200: {Status: 401, Message: "no", Since: now}, idle: {Message: "refused", Since: now}}
	return w
}

// Every answer of the port is as the document says, field by field: nothing is
// missing, nothing is more.
func TestAnswersAreAsOpenAPISays(t *testing.T) {
	w := busy(t)
	doc := described(t, w)
	for _, a := range []struct {
		path, query, method, body string
		status                    int
	}{
		{"/api/v1/profiles", "", "get", "", 200},
		{"/api/v1/profiles", "?n=1,7,40,100000", "get", "", 200},
		{"/api/v1/profiles", "?prompt_tokens=4000&n=5", "get", "", 200},
		{"/api/v1/profiles", "?rho=-1", "get", "", 400},
		{"/api/v1/profiles", "?%zz", "get", "", 400},
		{"/api/v1/routes", "", "get", "", 200},
		{"/api/v1/routes", "?window=5m", "get", "", 200},
		{"/api/v1/routes", "?window=7m", "get", "", 400},
		{"/api/v1/routes", "?window=5m;x", "get", "", 400},
		{"/api/v1/history", "", "get", "", 200},
		{"/api/v1/history", "?window=6h&by=backend&name=h200", "get", "", 200},
		{"/api/v1/history", "?window=start", "get", "", 400},
		{"/api/v1/history", "?by=key", "get", "", 400},
		{"/api/v1/history", "?name=nobody", "get", "", 400},
		{"/api/v1/timeline", "?limit=2", "get", "", 200},
		{"/api/v1/timeline", "?limit=0", "get", "", 400},
		{"/api/v1/scorecard", "", "get", "", 200},
		{"/api/v1/scorecard", "?model=chat&n=7", "get", "", 200},
		{"/api/v1/scorecard", "?n=0", "get", "", 400},
		{"/api/v1/scorecard", "?n=1&n=2", "get", "", 400},
		{"/api/v1/explain", "", "post", `{"model":"chat"}`, 200},
		{"/api/v1/explain", "", "post", `{"model":"chat","min_tps":5000}`, 200},
		{"/api/v1/explain", "", "post", `{"model":"nightly","class":"batch","prompt_tokens":9}`, 200},
		{"/api/v1/explain", "", "post", `{"model":7}`, 400},
		{"/api/v1/plan", "", "get", "", 200},
		{"/api/v1/plan", "", "post", `{"load":2,"engines":{"h200":0},"min_tps":{"chat":40}}`, 200},
		{"/api/v1/plan", "", "post", `{"laod":2}`, 400},
		{"/api/v1/plan", "", "post", `{"load":-1}`, 400},
		{"/api/v1/plan", "", "post", `{"window":"7m"}`, 400},
		{"/api/v1/decisions", "?limit=3", "get", "", 200},
		{"/api/v1/decisions", "?limit=0", "get", "", 400},
	} {
		rec := call(w.handler, strings.ToUpper(a.method), a.path+a.query, "", a.body)
		of := a.method + " " + a.path + a.query + " " + a.body
		if rec.Code != a.status {
			t.Errorf("%s: status %d, want %d: %.300s", of, rec.Code, a.status, rec.Body)
			continue
		}
		validate(t, schemaOf(t, doc, a.path, a.method, strconv.Itoa(a.status)), of, rec.Body.Bytes())
	}
}

func TestDrainIsAsOpenAPISays(t *testing.T) {
	w := busy(t)
	cfg := &config.Config{Admin: config.Admin{Listen: "127.0.0.1:9090", Token: "t0ken"}}
	handler := New(Options{
		Config: inForce(cfg), Router: w.router, Book: w.book, Metrics: w.metrics,
		Drain: func(name string, _ bool) bool { return name != "nobody" },
	})
	doc := described(t, w)
	for _, a := range []struct {
		name, token string
		status      int
	}{
		{"h200", "t0ken", 200}, {"was-there", "t0ken", 200}, {"nobody", "t0ken", 404}, {"h200", "wrong", 401},
	} {
		for _, what := range []string{"drain", "resume"} {
			rec := call(handler, http.MethodPost, "/api/v1/backends/"+a.name+"/"+what, a.token, "")
			if rec.Code != a.status {
				t.Errorf("%s %s: status %d, want %d", what, a.name, rec.Code, a.status)
			}
			validate(t, schemaOf(t, doc, "/api/v1/backends/{name}/"+what, "post", strconv.Itoa(a.status)), what+" "+a.name, rec.Body.Bytes())
		}
	}
}

func TestEventsAreAsOpenAPISays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := busy(t)
		schema := schemaOf(t, described(t, w), "/api/v1/events", "get", "200")
		next, stop := w.rawEvents(t)
		defer stop()
		for range 2 { // the second is without what the listener has
			validate(t, schema, "an event", next())
		}
	})
}
