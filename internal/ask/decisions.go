package ask

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/internal/report"
)

// DecisionsQuestion says which decisions of a gateway are asked for.
type DecisionsQuestion struct {
	Admin   string       // URL of an admin port
	Last    int          // so many of the last decisions; 0 = what would become of Request
	Request api.Question // when Last is 0

	// Dial replaces the network; nil means TCP.
	Dial Dial
}

// Ask returns the answer as it came, and the decisions in it. Of a Request, the reason
// of a candidate that is out of service says in words why.
func (q *DecisionsQuestion) Ask(ctx context.Context) (json.RawMessage, []api.Decision, error) {
	g, err := newAdminPort(q.Admin, q.Dial)
	if err != nil {
		return nil, nil, report.Usage(err)
	}
	g.ask = "fewer with --last"
	var raw json.RawMessage
	if q.Last > 0 {
		var answer api.Decisions
		if err := g.get(ctx, "/api/v1/decisions", url.Values{"limit": {strconv.Itoa(q.Last)}}, &raw); err != nil {
			return nil, nil, err
		}
		err := json.Unmarshal(raw, &answer)
		return raw, answer.Decisions, err
	}
	if err := g.exchange(ctx, http.MethodPost, "/api/v1/explain", q.Request, &raw); err != nil {
		return nil, nil, err
	}
	decisions := make([]api.Decision, 1)
	if err = json.Unmarshal(raw, &decisions[0]); err == nil {
		g.tellApart(ctx, &decisions[0])
	}
	return raw, decisions, err
}
