package gateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/internal/endpoint"
)

// ofAnthropic reports whether r comes from a client of Anthropic's API: it asks for
// messages, or, as its SDKs do, names a version of that API when it asks for models.
func ofAnthropic(r *http.Request) bool {
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/openai"), "/v1")
	if r.Header["Anthropic-Version"] != nil && (path == "/models" || strings.HasPrefix(path, "/models/")) {
		return true
	}
	return endpoint.InMessages(path)
}

// anthropicList is a list of models as Anthropic sends it: one page, which holds all.
type anthropicList struct {
	Data    []model `json:"data"`
	HasMore bool    `json:"has_more"`
	FirstID *string `json:"first_id"` // null = there are none
	LastID  *string `json:"last_id"`
}

// forAnthropic is the list of models as Anthropic's clients read it.
func forAnthropic(models []model) anthropicList {
	list := anthropicList{Data: make([]model, 0, len(models))}
	for _, m := range models {
		list.Data = append(list.Data, m.forAnthropic())
	}
	if n := len(models); n > 0 {
		list.FirstID, list.LastID = &models[0].ID, &models[n-1].ID
	}
	return list
}

// forAnthropic is m with the fields that Anthropic's API has, beside OpenAI's. What
// its backend says of them stays.
func (m model) forAnthropic() model {
	all := map[string]json.RawMessage{}
	for name, v := range map[string]string{"type": "model", "display_name": m.ID, "created_at": time.Unix(m.Created, 0).UTC().Format(time.RFC3339)} {
		all[name], _ = json.Marshal(v)
	}
	maps.Copy(all, m.Told)
	m.Told = all
	return m
}
