package ask

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/must"
)

// The router has one word for what is down, loading, or behind an open breaker.
func TestExplainTellsWhatIsOutOfServiceApart(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/explain" {
			fmt.Fprint(w, `{"outcome":"no_backend","candidates":[{"backend":"a","reason":"down"},{"backend":"b","reason":"down"},{"backend":"c","reason":"down"},{"backend":"d","reason":"drain"}]}`)
			return
		}
		fmt.Fprint(w, `{"targets":[
			{"backend":"a","health":"down","breaker":"closed","cause":"backend down: connection refused since 09:04 UTC","cause_kind":"backend_down"},
			{"backend":"b","health":"loading","breaker":"closed"},
			{"backend":"c","health":"down","breaker":"open","last_error":{"message":"status 500"}},
			{"backend":"d","health":"draining","breaker":"closed"}]}`)
	}))
	defer s.Close()
	q := DecisionsQuestion{Admin: s.URL, Request: api.Question{Model: "chat"}}
	raw, decisions, err := q.Ask(t.Context())
	must.Do(t, err)
	var out strings.Builder
	must.Do(t, PrintDecisions(&out, decisions, false, 140))
	for _, want := range []string{"backend down: connection refused since 09:04 UTC", "its model is loading", "its breaker is open: status 500", "draining: takes nobody new"} {
		if !strings.Contains(out.String(), "  "+want+"\n") {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(string(raw), "09:04") {
		t.Error("the answer is not as it came")
	}
}
