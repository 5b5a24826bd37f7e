package sim

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-dev/pacer/internal/must"
)

// types are the members "type" of a stream's events, runs of one as a single
// entry.
func types(t *testing.T, s stream) []string {
	t.Helper()
	var list []string
	for _, e := range s.events {
		var v struct{ Type string }
		if err := json.Unmarshal([]byte(e.data), &v); err != nil {
			t.Fatalf("%v in %s", err, e.data)
		}
		if len(list) == 0 || list[len(list)-1] != v.Type {
			list = append(list, v.Type)
		}
	}
	return list
}

// joined adds up the member of every event of a type.
func joined(t *testing.T, s stream, kind, member string) string {
	t.Helper()
	var b strings.Builder
	for _, e := range s.events {
		var v map[string]json.RawMessage
		must.Do(t, json.Unmarshal([]byte(e.data), &v))
		if string(v["type"]) != `"`+kind+`"` {
			continue
		}
		var text string
		data := v[member]
		if inner, deeper, ok := strings.Cut(member, "."); ok {
			var w map[string]json.RawMessage
			must.Do(t, json.Unmarshal(v[inner], &w))
			data = w[deeper]
		}
		if err := json.Unmarshal(data, &text); err != nil {
			t.Fatalf("%s in %s: %v", member, e.data, err)
		}
		b.WriteString(text)
	}
	return b.String()
}

const weather = `{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}`

func TestResponsesStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		s := r.stream(t.Context(), "/v1/responses", `{"model":"m","input":"hello","stream":true,"max_output_tokens":5}`)
		want := []string{
			"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
			"response.output_text.delta", "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
		}
		if d := cmp.Diff(want, types(t, s)); d != "" {
			t.Errorf("events differ (-want +got):\n%s", d)
		}
		if got := joined(t, s, "response.output_text.delta", "delta"); got != " the model reads a prompt" {
			t.Errorf("the text is %q", got)
		}
		var last struct {
			Response struct{ Usage responsesUsage } `json:"response"`
		}
		if err := json.Unmarshal([]byte(s.events[len(s.events)-1].data), &last); err != nil || last.Response.Usage.Output != 5 || last.Response.Usage.Input != 2 {
			t.Errorf("usage %+v (%v), want 2 in, 5 out", last.Response.Usage, err)
		}
	})
}

func TestResponsesAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		var answer struct{ ID string }
		_, body := r.call("POST", "/v1/responses", `{"model":"m","input":[{"role":"user","content":"hello"}],"max_output_tokens":1}`)
		must.Do(t, json.Unmarshal([]byte(body), &answer))
		for _, c := range []struct {
			method, path, body string
			want               int
		}{
			{"GET", "/v1/responses/" + answer.ID, "", 200},
			{"POST", "/v1/responses", `{"model":"m","input":"more","previous_response_id":"` + answer.ID + `"}`, 200},
			{"POST", "/v1/responses", `{"model":"m","input":"more","previous_response_id":"resp_other"}`, 404},
			{"DELETE", "/v1/responses/" + answer.ID, "", 200},
			{"GET", "/v1/responses/" + answer.ID, "", 404},
		} {
			if got, body := r.call(c.method, c.path, c.body); got != c.want {
				t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got, body, c.want)
			}
		}
	})
}

func TestMessagesStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		s := r.stream(t.Context(), "/v1/messages", `{`+hello+`,"stream":true,"max_tokens":3,"system":"be brief"}`)
		want := []string{"message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
		if d := cmp.Diff(want, types(t, s)); d != "" {
			t.Errorf("events differ (-want +got):\n%s", d)
		}
		if got := joined(t, s, "content_block_delta", "delta.text"); got != " the model reads" {
			t.Errorf("the text is %q", got)
		}
		status, body := r.call("POST", "/v1/messages", `{`+hello+`}`)
		if status != 400 || !strings.Contains(body, `{"type":"error","error":{"type":"invalid_request_error"`) {
			t.Errorf("without max_tokens: %d %s", status, body)
		}
	})
}

// In every dialect the arguments of a call are JSON that its schema allows,
// streamed or not, and who hands in what the tool returned gets text.
func TestToolCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		check := func(name, arguments string) {
			t.Helper()
			var got struct {
				City string
				Days int
			}
			if err := json.Unmarshal([]byte(arguments), &got); err != nil || got.City == "" || got.Days != 7 {
				t.Errorf("%s: the arguments are %s (%v)", name, arguments, err)
			}
		}
		tools := `,"tools":[{"type":"function","function":{"name":"weather","parameters":` + weather + `}}]`
		var whole struct{ Choices []chatChoice }
		_, body := r.call("POST", chat, `{`+hello+tools+`,"max_tokens":9}`)
		if err := json.Unmarshal([]byte(body), &whole); err != nil || whole.Choices[0].FinishReason != "tool_calls" {
			t.Fatalf("%v in %s", err, body)
		}
		check("chat", whole.Choices[0].Message.ToolCalls[0].Function.Arguments)

		s := r.stream(t.Context(), "/v1/responses", `{"model":"m","input":"hi","stream":true,"max_output_tokens":9,"tools":[{"type":"function","name":"weather","parameters":`+weather+`}]}`)
		check("responses", joined(t, s, "response.function_call_arguments.delta", "delta"))
		s = r.stream(t.Context(), "/v1/messages", `{`+hello+`,"stream":true,"max_tokens":9,"tools":[{"name":"weather","input_schema":`+weather+`}]}`)
		check("messages", joined(t, s, "content_block_delta", "delta.partial_json"))

		_, body = r.call("POST", chat, `{"model":"m","messages":[{"role":"user","content":"a"},{"role":"tool","content":"rain"}]`+tools+`,"max_tokens":3}`)
		if !strings.Contains(body, `"content":" the model reads"`) {
			t.Errorf("after the tool's answer: %s", body)
		}
		if status, _ := r.call("POST", chat, `{`+hello+tools+`,"tool_choice":{"function":{"name":"other"}}}`); status != 400 {
			t.Errorf("an unknown tool_choice: %d", status)
		}
	})
}

func TestJSONMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		for _, format := range []string{`{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"name":"w","schema":` + weather + `}}`} {
			for _, tokens := range []string{"1", "2", "40"} {
				var answer struct{ Choices []chatChoice }
				_, body := r.call("POST", chat, `{`+hello+`,"response_format":`+format+`,"max_tokens":`+tokens+`}`)
				must.Do(t, json.Unmarshal([]byte(body), &answer))
				if c := answer.Choices[0]; !json.Valid([]byte(*c.Message.Content)) || c.FinishReason != "stop" {
					t.Errorf("%s in %s tokens: %q ends with %s", format, tokens, *c.Message.Content, c.FinishReason)
				}
			}
		}
	})
}

func TestReasoning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Behaviours: []string{"reasoning"}})
		var answer struct{ Choices []chatChoice }
		_, body := r.call("POST", chat, `{`+hello+`,"max_tokens":4}`)
		must.Do(t, json.Unmarshal([]byte(body), &answer))
		if m := answer.Choices[0].Message; m.Reasoning != " the model" || *m.Content != " reads a" {
			t.Errorf("got %+v", m)
		}
		s := r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":4}`)
		if !strings.Contains(s.events[1].data, `"delta":{"reasoning_content":" the"}`) || !strings.Contains(s.events[3].data, `"delta":{"content":" reads"}`) {
			t.Errorf("got %v", plain(s))
		}
	})
}

func TestPlainEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		for _, c := range []struct{ path, body, want string }{
			{"/v1/embeddings", `{"model":"m","input":["one","three"]}`, `"index":1,"embedding":\[.*"usage":\{"prompt_tokens":3,`},
			{"/v1/embeddings", `{"model":"m","input":"one","encoding_format":"base64"}`, `"embedding":"[A-Za-z0-9+/]+=*"`},
			{"/v1/rerank", `{"model":"m","query":"q","documents":["a","b"]}`, `"index":1,"relevance_score":0.5`},
			{"/v1/moderations", `{"model":"m","input":"a"}`, `"flagged":false`},
			{"/v1/images/generations", `{"model":"m","prompt":"a"}`, `"b64_json":"iVBOR`},
			{"/v1/audio/speech", `{"model":"m","input":"a","voice":"alloy"}`, "\x00\x01\x02"},
		} {
			status, body := r.call("POST", c.path, c.body)
			if ok, err := regexp.MatchString(c.want, body); status != 200 || !ok || err != nil {
				t.Errorf("%s: %d %q, want %q", c.path, status, body, c.want)
			}
		}
	})
}

func TestTranscriptionsWithTheModelAfterTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}})
		for fields, want := range map[string]string{
			"model=m":                          `{"text":"heard 1000 bytes"}`,
			"model=m,response_format=text":     "heard 1000 bytes\n",
			"model=m,stream=true":              `data: {"type":"transcript.text.delta","delta":"heard"}`,
			"model=other":                      "does not exist",
			"stream=true,model=m,language=any": `"type":"transcript.text.done","text":"heard 1000 bytes"}`,
		} {
			var body bytes.Buffer
			form := multipart.NewWriter(&body)
			file, _ := form.CreateFormFile("file", "a.wav")
			file.Write(make([]byte, 1000))
			for _, f := range strings.Split(fields, ",") {
				name, value, _ := strings.Cut(f, "=")
				form.WriteField(name, value)
			}
			form.Close()
			q := must.Get(http.NewRequestWithContext(t.Context(), "POST", "http://sim/v1/audio/transcriptions", &body))(t)
			q.Header.Set("Content-Type", form.FormDataContentType())
			resp := must.Get(r.client.Do(q))(t)
			var got bytes.Buffer
			got.ReadFrom(resp.Body)
			resp.Body.Close()
			if !strings.Contains(got.String(), want) {
				t.Errorf("%s: %s, want %s", fields, got.String(), want)
			}
		}
	})
}

func TestHabitsOfRealServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		with := func(habit string, slots int) *rig {
			return serve(t, Options{Model: Model{A: 0.025}, Behaviours: []string{habit}, MaxNumSeqs: slots})
		}
		if status, body := with("500-on-bad-json", 0).call("POST", chat, `{"model":`); status != 500 || !strings.Contains(body, "parse_error") {
			t.Errorf("500-on-bad-json: %d %s", status, body)
		}
		if status, body := with("unknown-model-200", 0).call("POST", chat, `{"model":"x","messages":[{"role":"user","content":"a"}]}`); status != 200 || !strings.Contains(body, `"model":"m"`) {
			t.Errorf("unknown-model-200: %d %s", status, body)
		}
		if _, body := with("n2-usage-wrong", 0).call("POST", chat, `{`+hello+`,"n":2,"max_tokens":3}`); !strings.Contains(body, `"completion_tokens":3}`) {
			t.Errorf("n2-usage-wrong: %s", body)
		}
		r := with("loading-503", 0)
		if status, body := r.call("GET", "/health", ""); status != 503 || !strings.Contains(body, "Loading model") {
			t.Errorf("loading-503: %d %s", status, body)
		}
		<-time.After(loadingTime + time.Millisecond)
		if status, _ := r.call("GET", "/health", ""); status != 200 {
			t.Errorf("loading-503: still %d after %v", status, loadingTime)
		}
		r = with("429-on-full-queue", 1)
		refused := make(chan int, 8)
		for range 8 {
			go func() { refused <- r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":20}`).status }()
		}
		count := 0
		for range 8 {
			if <-refused == http.StatusTooManyRequests {
				count++
			}
		}
		if count == 0 || count > 8-1-shortQueueLimit+1 {
			t.Errorf("429-on-full-queue refused %d of 8 with one slot", count)
		}
	})
}

func TestPingComments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Options{Model: Model{A: 0.025}, Behaviours: []string{"ping-comments"}})
		_, body := r.call("POST", chat, `{`+hello+`,"stream":true,"max_tokens":40}`)
		if got := strings.Count(body, "\n: ping\n\n") + strings.Count(body[:8], ": ping"); got != 3 {
			t.Errorf("%d comments among 40 tokens, want one at the start and two between", got)
		}
	})
}

// Measured curves are served as they were measured, and a prompt that is
// prefilled in one step is felt by those who decode.
func TestCurvesAndStalls(t *testing.T) {
	for habit, want := range map[string]float64{"step-curve": 387, "cliff-curve": 85} {
		m := must.Get(NewServer(Options{Names: []string{"m"}, Model: Model{A: 1}, Behaviours: []string{habit}, Noise: -1}))(t)
		if got := 1 / m.engine.base[4]; got < want-1 || got > want+1 {
			t.Errorf("%s gives %.0f tokens/s to four, want %.0f", habit, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		slowest := func(habits ...string) time.Duration {
			r := serve(t, Options{Model: Model{A: 0.010, D: 100e-6}, Behaviours: habits})
			done := make(chan stream)
			go func() { done <- r.stream(t.Context(), chat, `{`+hello+`,"stream":true,"max_tokens":100}`) }()
			<-time.After(500 * time.Millisecond)
			long := strings.Repeat("four", 20_000)
			r.stream(t.Context(), chat, `{"model":"m","messages":[{"role":"user","content":"`+long+`"}],"stream":true,"max_tokens":1}`)
			s := <-done
			var gap time.Duration
			tokens := s.tokens(t)
			for i := 1; i < len(tokens); i++ {
				gap = max(gap, tokens[i].at.Sub(tokens[i-1].at))
			}
			return gap
		}
		if chunked, stalled := slowest(), slowest("prefill-stalls-decode"); stalled < 2*time.Second || chunked > time.Second {
			t.Errorf("the longest gap beside a prompt of 20,000 tokens is %v, and %v with prefill-stalls-decode", chunked, stalled)
		}
	})
}
