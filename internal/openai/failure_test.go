package openai

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// failures are errors as servers send them.
var failures = map[string]struct {
	kind, body string
	want       Failure
}{
	"OpenAI": {
		"application/json", `{"error":{"message":"Too long.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}` + "\n",
		Failure{Message: "Too long.", Type: "invalid_request_error", Param: "messages", Code: "context_length_exceeded", Shaped: true},
	},
	"Anthropic": {
		"application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
		Failure{Message: "Overloaded", Type: "overloaded_error", Shaped: true},
	},
	"vLLM": {
		"application/json", `{"error":{"message":"The model x does not exist.","type":"NotFoundError","param":"model","code":404}}`,
		Failure{Message: "The model x does not exist.", Type: "NotFoundError", Param: "model", Shaped: true},
	},
	"vLLM before 0.9": {
		"application/json", `{"object":"error","message":"The model x does not exist.","type":"NotFoundError","param":null,"code":404}`,
		Failure{Message: "The model x does not exist.", Type: "NotFoundError"},
	},
	"Gemini": {
		"application/json; charset=UTF-8", "[{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"API key not valid.\",\n    \"status\": \"INVALID_ARGUMENT\",\n \"details\":[{\"reason\":\"API_KEY_INVALID\"}]}}\n]\n",
		Failure{Message: "API key not valid."},
	},
	"a string":                      {"application/json", `"model not found"`, Failure{Message: "model not found"}},
	"RFC 9457":                      {"application/problem+json", `{"type":"https://example.com/out-of-credit","title":"You do not have enough credit.","detail":"Your balance is 30, but that costs 50.","status":403}`, Failure{Message: "You do not have enough credit: Your balance is 30, but that costs 50."}},
	"RFC 9457, nothing but a title": {"application/problem+json", `{"type":"about:blank","title":"Not Found","detail":"Not Found","status":404}`, Failure{Message: "Not Found"}},
	"FastAPI":                       {"application/json", `{"detail":"Method Not Allowed"}`, Failure{Message: "Method Not Allowed"}},
	"FastAPI, checked": {
		"application/json", `{"detail":[{"type":"missing","loc":["body","messages",0,"content"],"msg":"Field required","input":{"message":"not this"}},{"type":"int_type","loc":["body","n"],"msg":"Input should be a valid integer"}]}`,
		Failure{Message: "body.messages.0.content: Field required; body.n: Input should be a valid integer"},
	},
	"TGI":                   {"application/json", `{"error":"Input validation error: inputs must have less than 1024 tokens","error_type":"validation"}`, Failure{Message: "Input validation error: inputs must have less than 1024 tokens"}},
	"Mistral":               {"application/json", `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","param":null,"code":null}`, Failure{Message: "body.x: Extra inputs are not permitted", Type: "invalid_request_error"}},
	"message":               {"application/json", `{"message":"no Route matched with those values"}`, Failure{Message: "no Route matched with those values"}},
	"Message of AWS":        {"application/x-amz-json-1.1", `{"__type":"ValidationException","Message":"bad input"}`, Failure{Message: "bad input"}},
	"errors":                {"application/json", `{"success":false,"errors":[{"code":7003,"message":"Could not route"},{"code":7000,"message":"No route"}],"result":null}`, Failure{Message: "Could not route; No route"}},
	"JSON:API":              {"application/vnd.api+json", `{"errors":[{"status":"422","title":"Invalid","detail":"Too short"}]}`, Failure{Message: "Invalid: Too short"}},
	"OAuth":                 {"application/json", `{"error":"invalid_token","error_description":"The token is expired"}`, Failure{Message: "invalid_token: The token is expired"}},
	"Spring":                {"application/json", `{"timestamp":"2026-01-01","status":404,"error":"Not Found","message":"No handler","path":"/v1/x"}`, Failure{Message: "Not Found: No handler"}},
	"DashScope":             {"application/json", `{"code":"InvalidParameter","message":"Range of input length","request_id":"1"}`, Failure{Message: "Range of input length", Code: "InvalidParameter"}},
	"an error without text": {"application/json", `{"error":{"message":null,"code":"out_of_quota"}}`, Failure{Message: "out_of_quota", Code: "out_of_quota", Shaped: true}},
	"of no known name":      {"application/json", `{"ok": false, "why": {"because": "it rains"}}`, Failure{Message: `{"ok": false, "why": {"because": "it rains"}}`}},
	"no words":              {"application/json", `{"error":{}}`, Failure{Shaped: true}},
	"null":                  {"application/json", `null`, Failure{}},
	"empty":                 {"application/json", " \r\n", Failure{}},
	"an empty object":       {"application/json", `{}`, Failure{}},
	"cut off":               {"application/json", `{"error":{"type":"x","message":"It says that \u00e`, Failure{Message: "It says that", Type: "x", Shaped: true}},
	"cut off in a list":     {"application/json", `{"detail":[{"loc":["body"],"msg":"First"},{"msg":"Sec`, Failure{Message: "body: First; Sec"}},
	"with more behind it":   {"application/json", `{"error":{"message":"One"}}{"error":{"message":"Two"}}`, Failure{Message: "One", Shaped: true}},
	"an event":              {"text/event-stream", "event: error\ndata: {\"error\":{\"message\":\"No\"}}\n\n", Failure{Message: "No"}},
	"nginx": {
		"text/html", "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center>\r\n<hr><center>nginx/1.25.3</center>\r\n</body>\r\n</html>\r\n",
		Failure{Message: "413 Request Entity Too Large"},
	},
	"a page without a title": {"text/html", "<!doctype html><style>p{color:red}</style><script>var a = '<p>';</script><!-- no --><p>It&#39;s&nbsp;<b>down</b></p", Failure{Message: "It's down"}},
	"cut off in a script":    {"text/html", "<p>Down" + strings.Repeat("<script>var a = 1;", 4000), Failure{Message: "Down"}},
	"cut off in a style":     {"text/html", "<p>Down" + strings.Repeat("<style>p {", 4000), Failure{Message: "Down"}},
	"cut off in a comment":   {"text/html", "<p>Down<!-- > no", Failure{Message: "Down"}},
	"a page that says plain": {"text/plain", "<html><title> Oops </title>", Failure{Message: "Oops"}},
	"S3":                     {"application/xml", `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message><![CDATA[Access & more denied]]></Message></Error>`, Failure{Message: "AccessDenied Access & more denied"}},
	"a long page":            {"text/html", "<p>" + strings.Repeat("ä ", 4000), Failure{Message: strings.Repeat("ä ", 100) + "…"}},
	"plain words":            {"text/plain; charset=utf-8", "Failed to deserialize:\n  missing field `messages`\n", Failure{Message: "Failed to deserialize: missing field `messages`"}},
	"plain, in a bracket":    {"text/plain", "[Errno 2] No such file", Failure{Message: "[Errno 2] No such file"}},
	"long and plain":         {"", strings.Repeat("x", 4096), Failure{Message: strings.Repeat("x", 300) + "…"}},
	"colours":                {"text/plain", "\x1b[31mred\x1b[0m \x1b]0;owned\x07title\x00\x7f\u202eback", Failure{Message: "red titleback"}},
	"colours in JSON":        {"application/json", `{"message":"\u001b[2J\u001b[31mred\u0007 \u202eback"}`, Failure{Message: "red back"}},
	"an image":               {"image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01", Failure{}},
	"deep":                   {"application/json", strings.Repeat(`{"detail":`, 900) + `"deep"` + strings.Repeat("}", 900), Failure{Message: strings.Repeat(`{"detail":`, 30) + "…"}},
	"deep arrays":            {"application/json", strings.Repeat("[", 30_000), Failure{}},
}

func TestReadFailure(t *testing.T) {
	for name, c := range failures {
		t.Run(name, func(t *testing.T) {
			if got := ReadFailure(c.kind, []byte(c.body)); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// FuzzReadFailure checks what holds of any answer: what is told is one line
// that no terminal obeys, and bounded.
func FuzzReadFailure(f *testing.F) {
	for _, c := range failures {
		f.Add(c.kind, []byte(c.body))
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		got := ReadFailure(kind, body)
		for _, s := range []string{got.Message, got.Type, got.Param, got.Code} {
			if !utf8.ValidString(s) || utf8.RuneCountInString(s) > mostWords+1 || strings.IndexFunc(s, unicode.IsControl) >= 0 {
				t.Errorf("%q", s)
			}
		}
		var shape struct{ Error map[string]any }
		if got.Shaped && json.Valid(body) && (json.Unmarshal(body, &shape) != nil || shape.Error == nil) {
			t.Errorf("%q goes on as it is", body)
		}
	})
}
