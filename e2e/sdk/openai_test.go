package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/pacer-dev/pacer/internal/must"
)

func (w world) client(key string, options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(w.pacer + "/v1"), option.WithAPIKey(key), option.WithMaxRetries(0),
	}, options...)...)
}

func question(tokens int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "chat", MaxTokens: openai.Int(tokens),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say something.")},
	}
}

// fault sets a fault of the engine, and takes it away when the test ends.
func (w world) fault(t *testing.T, set, end string) {
	t.Helper()
	post := func(body string) {
		resp, err := http.Post(w.sim+"/sim/set", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("setting %s: %s", body, resp.Status)
		}
	}
	post(set)
	t.Cleanup(func() { post(end) })
}

// TestGo runs openai-go.
func TestGo(t *testing.T) {
	w := newWorld(t)
	for name, run := range map[string]func(*testing.T, world){
		"plain": goPlain, "stream": goStream, "tools": goTools, "responses": goResponses,
		"abort": goAbort, "200 streams": goManyStreams, "errors": goErrors, "cut": goCut, "retry": goRetry,
	} {
		t.Run(name, func(t *testing.T) { run(t, w) })
	}
}

func goPlain(t *testing.T, w world) {
	c := w.client(fullKey)
	answer, err := c.Chat.Completions.New(t.Context(), question(12))
	if err != nil || answer.Usage.CompletionTokens != 12 {
		t.Fatalf("%+v, %v", answer, err)
	}
	m, err := c.Models.Get(t.Context(), "org/model")
	if err != nil || m.ID != "org/model" {
		t.Errorf("model %+v, %v", m, err)
	}
	e, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
		Model: "chat", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"one", "two"}},
	})
	if err != nil || len(e.Data) != 2 || len(e.Data[1].Embedding) != 8 {
		t.Errorf("embeddings %+v, %v", e, err)
	}
}

func goStream(t *testing.T, w world) {
	c := w.client(fullKey)
	asked := question(12)
	asked.StreamOptions.IncludeUsage = openai.Bool(true)
	for name, q := range map[string]openai.ChatCompletionNewParams{"plain": question(12), "with usage": asked} {
		stream := c.Chat.Completions.NewStreaming(t.Context(), q)
		var sum openai.ChatCompletionAccumulator
		empty := 0
		for stream.Next() {
			sum.AddChunk(stream.Current())
			if len(stream.Current().Choices) == 0 {
				empty++
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := len(strings.Fields(sum.Choices[0].Message.Content)); got != 12 {
			t.Errorf("%s: %d words", name, got)
		}
		want := int64(0)
		if name == "with usage" {
			want = 1
		}
		if int64(empty) != want || sum.Usage.CompletionTokens != 12*want {
			t.Errorf("%s: %d chunks without choices, usage %d", name, empty, sum.Usage.CompletionTokens)
		}
	}
}

func goTools(t *testing.T, w world) {
	c := w.client(fullKey)
	q := question(9)
	q.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "weather",
		Parameters: openai.FunctionParameters{
			"type": "object", "properties": map[string]any{"city": map[string]string{"type": "string"}, "days": map[string]string{"type": "integer"}},
		},
	})}
	stream := c.Chat.Completions.NewStreaming(t.Context(), q)
	var sum openai.ChatCompletionAccumulator
	for stream.Next() {
		sum.AddChunk(stream.Current())
	}
	must.Do(t, stream.Err())
	var arguments struct{ Days int }
	if err := json.Unmarshal([]byte(sum.Choices[0].Message.ToolCalls[0].Function.Arguments), &arguments); err != nil || arguments.Days != 7 {
		t.Errorf("the call is %+v (%v)", sum.Choices[0].Message.ToolCalls, err)
	}
}

func goResponses(t *testing.T, w world) {
	c := w.client(fullKey)
	q := responses.ResponseNewParams{
		Model: "chat", MaxOutputTokens: openai.Int(6), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")},
	}
	answer, err := c.Responses.New(t.Context(), q)
	if err != nil || answer.Usage.OutputTokens != 6 {
		t.Fatalf("%+v, %v", answer, err)
	}
	stream := c.Responses.NewStreaming(t.Context(), q)
	last := ""
	for stream.Next() {
		last = stream.Current().Type
	}
	if stream.Err() != nil || last != "response.completed" {
		t.Errorf("the stream ended with %q, %v", last, stream.Err())
	}
}

func (w world) cancelled(t *testing.T) int {
	t.Helper()
	resp := must.Get(http.Get(w.sim + "/sim/truth"))(t)
	defer resp.Body.Close()
	var truth struct{ Cancelled int }
	must.Do(t, json.NewDecoder(resp.Body).Decode(&truth))
	return truth.Cancelled
}

func goAbort(t *testing.T, w world) {
	before := w.cancelled(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := w.client(fullKey)
	stream := c.Chat.Completions.NewStreaming(ctx, question(100_000))
	for range 5 {
		stream.Next()
	}
	cancel()
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.NewTicker(50 * time.Millisecond); w.cancelled(t) == before; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("the engine was not told")
		}
	}
}

func goManyStreams(t *testing.T, w world) {
	c := w.client(fullKey, option.WithMaxRetries(4))
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			stream := c.Chat.Completions.NewStreaming(t.Context(), question(40))
			tokens := 0
			for stream.Next() {
				if choices := stream.Current().Choices; len(choices) > 0 && choices[0].Delta.Content != "" {
					tokens++
				}
			}
			if stream.Err() != nil || tokens != 40 {
				t.Errorf("%d tokens, %v", tokens, stream.Err())
			}
		})
	}
	wg.Wait()
}

func goErrors(t *testing.T, w world) {
	unknown, empty := question(3), question(3)
	unknown.Model, empty.Messages = "nobody", nil
	for _, c := range []struct {
		name, key string
		q         openai.ChatCompletionNewParams
		status    int
		code      string
		headers   map[string]string
	}{
		{"wrong key", "sk-wrong", question(3), 401, "invalid_api_key", nil},
		{"unknown model", fullKey, unknown, 404, "model_not_found", nil},
		{"floor beyond the key", narrowKey, question(3), 403, "permission_denied", map[string]string{"x-pacer-min-tps": "20"}},
		{"no messages", fullKey, empty, 400, "400", nil},
	} {
		var options []option.RequestOption
		for k, v := range c.headers {
			options = append(options, option.WithHeader(k, v))
		}
		client := w.client(c.key)
		_, err := client.Chat.Completions.New(t.Context(), c.q, options...)
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != c.status || e.Code != c.code || e.Response.Header.Get("x-request-id") == "" {
			t.Errorf("%s: %v, want %d %s and a request id", c.name, err, c.status, c.code)
		}
	}
}

func goCut(t *testing.T, w world) {
	w.fault(t, `{"cut":4}`, `{"cut":0}`)
	c := w.client(fullKey)
	stream := c.Chat.Completions.NewStreaming(t.Context(), question(50))
	for stream.Next() {
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "upstream_disconnected") {
		t.Errorf("a cut stream ended with %v", err)
	}
}

func goRetry(t *testing.T, w world) {
	w.fault(t, `{"status":503}`, `{"status":0}`)
	healed := time.AfterFunc(300*time.Millisecond, func() {
		http.Post(w.sim+"/sim/set", "application/json", strings.NewReader(`{"status":0}`))
	})
	defer healed.Stop()
	c := w.client(fullKey, option.WithMaxRetries(6))
	answer, err := c.Chat.Completions.New(t.Context(), question(3))
	if err != nil || answer.Usage.CompletionTokens != 3 {
		t.Errorf("%+v, %v", answer, err)
	}
}
