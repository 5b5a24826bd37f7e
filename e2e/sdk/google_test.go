package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"google.golang.org/genai"

	"github.com/pacer-dev/pacer/internal/must"
)

// googleTargets are the APIs that Google's library for Go is run before.
var googleTargets = []string{"engine", "anthropic", "claude-5", "bedrock", "cohere", "mistral", "gemini"}

// pairCase is a case of pairs/cases.py.
type pairCase struct {
	Name string
	Body struct {
		Contents json.RawMessage
		Config   json.RawMessage
	}
	Up   map[string]map[string]any
	Down map[string]any
	No   map[string]string
	But  []string
}

// googlePairs runs Google's library for Go, as pairs.py does that for Python.
func googlePairs(t *testing.T, python, cases string) (all []pair) {
	t.Helper()
	text := must.Get(os.ReadFile(cases))(t)
	var table map[string]struct{ Cases []pairCase }
	must.Do(t, json.Unmarshal(text, &table))
	fakes := fakeServers(t, python)
	gateway := pairsGateway(t, fakes)
	client := must.Get(genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "x", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: gateway}}))(t)
	for _, target := range googleTargets {
		g := &googlePair{
			pair:   pair{Client: "google-genai (Go)", Version: version(t, "google.golang.org/genai"), From: "generate", To: target},
			client: client, fakes: fakes,
		}
		for i := range table["generate"].Cases {
			if c := &table["generate"].Cases[i]; !slices.Contains(c.But, target) {
				g.run(t.Context(), c)
			}
		}
		for _, status := range []int{400, 401, 403, 404, 422, 429, 500, 503, 529} {
			g.note(fmt.Sprint("status ", status), g.status(t.Context(), status))
		}
		g.note("count_tokens", g.count(t.Context()))
		g.note("an error within a stream", g.overload(t.Context()))
		g.note("a client that hangs up", g.cancel(t.Context()))
		g.tell(t)
		all = append(all, g.pair)
	}
	return all
}

// googlePair is one API that the library is run before.
type googlePair struct {
	pair
	client *genai.Client
	fakes  string
}

func (g *googlePair) note(name string, wrong error) {
	g.Cases++
	if wrong != nil {
		g.Failed = append(g.Failed, name+": "+wrong.Error())
	}
}

// seen is what the fakes have got since they were asked last.
func (g *googlePair) seen() (v gjson.Result) {
	resp, err := http.Get(g.fakes + "/seen")
	if err != nil {
		return v
	}
	defer resp.Body.Close()
	var text json.RawMessage
	if json.NewDecoder(resp.Body).Decode(&text) != nil {
		return v
	}
	return gjson.ParseBytes(text)
}

// of is what a case says of the target; a later Claude is like the others, but for
// what it says.
func of[T any](by map[string]T, target string) (v T) {
	if v, ok := by[target]; ok || target != "claude-5" {
		return v
	}
	return by["anthropic"]
}

// call reads what the library is called with.
func (c *pairCase) call() (contents []*genai.Content, config *genai.GenerateContentConfig, err error) {
	var text string
	if json.Unmarshal(c.Body.Contents, &text) == nil {
		contents = genai.Text(text)
	} else if err := json.Unmarshal(c.Body.Contents, &contents); err != nil {
		return nil, nil, err
	}
	said := c.Body.Config
	if system := gjson.GetBytes(said, "systemInstruction"); system.Type == gjson.String {
		said = []byte(strings.Replace(string(said), system.Raw, `{"parts":[{"text":`+system.Raw+`}]}`, 1))
	}
	if len(said) > 0 {
		err = json.Unmarshal(said, &config)
	}
	return contents, config, err
}

func (g *googlePair) run(ctx context.Context, c *pairCase) {
	model, dropped := g.To, of(c.No, g.To)
	contents, config, err := c.call()
	if err != nil {
		g.note(c.Name, err)
		return
	}
	if dropped != "" {
		_, err := g.client.Models.GenerateContent(ctx, model, contents, config)
		name, _, _ := strings.Cut(dropped, ",")
		var api genai.APIError
		if !errors.As(err, &api) || api.Code != 400 || !strings.Contains(fmt.Sprint(api.Details), "field:"+name) || g.seen().Get("n").Int() != 0 {
			g.note(c.Name+", refused", fmt.Errorf("%v, want %s to be refused", err, name))
		} else {
			g.note(c.Name+", refused", nil)
		}
		model += "-lenient"
	}
	answer, err := g.client.Models.GenerateContent(ctx, model, contents, config)
	if err == nil {
		if got := answer.SDKHTTPResponse.Headers.Get("x-pacer-dropped"); sorted(got) != sorted(dropped) {
			err = fmt.Errorf("x-pacer-dropped is %q, want %q", got, dropped)
		}
		answer.SDKHTTPResponse = nil
	}
	g.note(c.Name+", document", cmpErr(err, func() error { return g.check(c, answer, model) }))
	var sum *genai.GenerateContentResponse
	err = nil
	for chunk, failed := range g.client.Models.GenerateContentStream(ctx, model, contents, config) {
		if err = failed; err != nil {
			break
		}
		sum = foldGoogle(sum, chunk)
	}
	g.note(c.Name+", stream", cmpErr(err, func() error { return g.check(c, sum, model) }))
}

func cmpErr(err error, check func() error) error {
	if err != nil {
		return err
	}
	return check()
}

func sorted(list string) string {
	items := strings.Split(list, ", ")
	slices.Sort(items)
	return strings.Join(items, ", ")
}

// foldGoogle adds a chunk to what came before: text is joined to that before it.
func foldGoogle(sum, chunk *genai.GenerateContentResponse) *genai.GenerateContentResponse {
	var parts []*genai.Part
	if sum != nil {
		parts = sum.Candidates[0].Content.Parts
	}
	whole := *chunk
	whole.SDKHTTPResponse = nil
	candidate := genai.Candidate{Content: &genai.Content{Role: "model"}}
	if len(chunk.Candidates) > 0 {
		candidate = *chunk.Candidates[0]
		if candidate.Content == nil {
			candidate.Content = &genai.Content{Role: "model"}
		}
	}
	for _, p := range candidate.Content.Parts {
		plain := p.FunctionCall == nil
		if n := len(parts); plain && n > 0 && parts[n-1].FunctionCall == nil && parts[n-1].Thought == p.Thought {
			last := *parts[n-1]
			last.Text += p.Text
			if p.ThoughtSignature != nil {
				last.ThoughtSignature = p.ThoughtSignature
			}
			parts[n-1] = &last
		} else if !plain || p.Text != "" {
			parts = append(parts, p)
		}
	}
	candidate.Content = &genai.Content{Role: "model", Parts: parts}
	whole.Candidates = []*genai.Candidate{&candidate}
	return &whole
}

// check holds what went up, and the answer, to what the case says.
func (g *googlePair) check(c *pairCase, answer any, model string) error {
	told := g.seen()
	switch {
	case len(told.Get("wrong").Array()) > 0:
		return fmt.Errorf("the request is none of this API: %s", told.Get("wrong"))
	case told.Get("n").Int() == 0:
		return errors.New("no request came")
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	if err := differs("up", told.Get("last.body"), of(c.Up, g.To), model); err != nil {
		return err
	}
	return differs("down", gjson.ParseBytes(text), c.Down, model)
}

// differs is the first of want that v does not hold.
func differs(what string, v gjson.Result, want map[string]any, model string) error {
	for path, expected := range want {
		got := v.Get(path)
		if object, ok := expected.(map[string]any); ok && len(object) == 1 && object["JSON"] != nil {
			got, expected = gjson.Parse(got.Str), object["JSON"]
		}
		if expected == "MODEL" {
			expected = model
		}
		value := got.Value()
		if !reflect.DeepEqual(value, expected) {
			return fmt.Errorf("%s: %s is %v, want %v", what, path, value, expected)
		}
	}
	return nil
}

func (g *googlePair) status(ctx context.Context, status int) error {
	defer g.seen()
	_, err := g.client.Models.GenerateContent(ctx, g.To, genai.Text(fmt.Sprint("status ", status)), nil)
	var api genai.APIError
	if !errors.As(err, &api) {
		return fmt.Errorf("no error: %v", err)
	}
	want := map[int][]int{400: {400}, 422: {400, 422}, 404: {404, 502}, 429: {429}}[status]
	kind := slices.Contains(want, api.Code) || want == nil && api.Code >= 500
	if !kind || !strings.Contains(api.Message, fmt.Sprint("because of ", status)) && !slices.Contains([]int{401, 403, 404}, status) {
		return err
	}
	return nil
}

func (g *googlePair) count(ctx context.Context) error {
	defer g.seen()
	got, err := g.client.Models.CountTokens(ctx, g.To, genai.Text("one two three four"), nil)
	if err == nil && (g.To == "gemini" && got.TotalTokens != 42 || got.TotalTokens < 4 || got.TotalTokens > 42) {
		err = fmt.Errorf("%d tokens", got.TotalTokens)
	}
	return err
}

func (g *googlePair) overload(ctx context.Context) error {
	defer g.seen()
	for _, err := range g.client.Models.GenerateContentStream(ctx, g.To, genai.Text("overload"), nil) {
		if err != nil {
			if strings.Contains(err.Error(), "Overloaded") {
				return nil
			}
			return err
		}
	}
	return errors.New("no error")
}

func (g *googlePair) cancel(ctx context.Context) error {
	g.seen()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, err := range g.client.Models.GenerateContentStream(ctx, g.To, genai.Text("hang"), nil) {
		if err != nil {
			return err
		}
		break
	}
	cancel()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if g.seen().Get("gone").Int() > 0 {
			return nil
		}
	}
	return errors.New("the backend's request was not cancelled")
}
