package sim

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
)

const (
	// maxBodyBytes bounds a request.
	maxBodyBytes = 32 << 20
	// maxModelLen bounds prompt and answer of one sequence, in tokens.
	maxModelLen = 131_072
	// maxChoices bounds the sequences of one request: prompts × n.
	maxChoices = 128
	// standardTokens is how long an answer is when the request does not say.
	standardTokens = 128
	// bytesPerToken is what a prompt token is taken to be.
	bytesPerToken = 4
)

// request is what the engine understands of a body. The rest is ignored, as
// sampling parameters change nothing here.
type request struct {
	Model               string         `json:"model"`
	Messages            []message      `json:"messages"`
	Prompt              *prompt        `json:"prompt"`
	Stream              bool           `json:"stream"`
	StreamOptions       *streamOptions `json:"stream_options"`
	MaxTokens           *int           `json:"max_tokens"`
	MaxCompletionTokens *int           `json:"max_completion_tokens"`
	N                   *int           `json:"n"`

	ContinueFinalMessage bool  `json:"continue_final_message"`
	AddGenerationPrompt  *bool `json:"add_generation_prompt"`

	text string // of the only prompt, for the prefix cache; "" = it is no text
	said int    // tokens of the answer that the prompt has already

	Tools          []tool          `json:"tools"`
	ToolChoice     json.RawMessage `json:"tool_choice"`
	ResponseFormat *responseFormat `json:"response_format"`
}

type streamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is the text of a message, which comes as a string, as a list of
// parts, or as null.
type content struct {
	bytes int
	text  string // for the prefix cache
}

func (c *content) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		var text *string
		if err := json.Unmarshal(data, &text); err != nil {
			return errors.New("content must be a string or a list of parts")
		}
		if text != nil {
			c.bytes, c.text = len(*text), *text
		}
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return errors.New("a part of content must be an object")
	}
	for _, p := range parts {
		c.bytes += len(p.Text)
		c.text += p.Text
	}
	return nil
}

// prompt is what a completion continues: one text or one list of token ids, or
// a list of either. Only the lengths are kept, in tokens.
type prompt struct {
	tokens []int
	text   string // of one that is a text, for the prefix cache
}

func (p *prompt) UnmarshalJSON(data []byte) error {
	if n, ok := onePrompt(data); ok {
		p.tokens = []int{n}
		_ = json.Unmarshal(data, &p.text) // token ids have none
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		p.tokens = make([]int, 0, len(list))
		for _, one := range list {
			n, ok := onePrompt(one)
			if !ok {
				return errPrompt
			}
			p.tokens = append(p.tokens, n)
		}
		return nil
	}
	return errPrompt
}

var errPrompt = errors.New("prompt must be a string, a list of token ids, or a list of either")

// onePrompt is the length of a text or of a list of token ids, in tokens.
func onePrompt(data []byte) (tokens int, ok bool) {
	var text *string
	if json.Unmarshal(data, &text) == nil && text != nil {
		return tokensOf(len(*text)), true
	}
	var ids []int
	if json.Unmarshal(data, &ids) == nil && len(ids) > 0 {
		return len(ids), true
	}
	return 0, false
}

// tokensOf is how many prompt tokens so many bytes of text are.
func tokensOf(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// readRequest reads and checks the body of a generation, and returns it beside
// what all endpoints have in common.
func (s *Server) readRequest(w http.ResponseWriter, r *http.Request) (q *request, body []byte, err error) {
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		return nil, nil, bodyError(err)
	}
	if status := s.faults.Load().Status; status != 0 {
		return nil, nil, &apiError{status: status, kind: http.StatusText(status), message: "The engine was told to fail."}
	}
	q = &request{}
	if err := json.Unmarshal(body, q); err != nil {
		if s.quirks.badJSONIs500 {
			return nil, nil, &apiError{status: http.StatusInternalServerError, kind: "server_error", message: "[json.exception.parse_error.101] " + err.Error()}
		}
		return nil, nil, badRequest("", "The body is not what is expected: %v", err)
	}
	if !s.serves(q.Model) {
		return nil, nil, &apiError{
			status: http.StatusNotFound, kind: "NotFoundError", param: "model",
			message: "The model `" + q.Model + "` does not exist.",
		}
	}
	if q.Model == "" || !slices.Contains(s.names, q.Model) {
		q.Model = s.names[0]
	}
	if q.StreamOptions != nil && !q.Stream {
		return nil, nil, badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	return q, body, nil
}

// maxTokens is how long the answer is to be.
func (q *request) maxTokens() int {
	switch {
	case q.MaxCompletionTokens != nil:
		return *q.MaxCompletionTokens
	case q.MaxTokens != nil:
		return *q.MaxTokens
	}
	return max(standardTokens-q.said, 1)
}

// generation is what q asks for, with a choice for each of n answers to each
// of the prompts, whose lengths are in tokens.
func (q *request) generation(prompts []int) (*generation, error) {
	n := 1
	if q.N != nil {
		n = *q.N
	}
	if n < 1 || n*len(prompts) > maxChoices || n > maxChoices {
		return nil, badRequest("n", "n must be at least 1, and at most %d answers are given; got n=%d for %d prompts.", maxChoices, n, len(prompts))
	}
	answer := q.maxTokens()
	if answer < 1 {
		return nil, badRequest("max_tokens", "max_tokens must be at least 1, got %d.", answer)
	}
	g := &generation{maxTokens: answer, choices: make([]choice, 0, n*len(prompts)), news: make(chan struct{}, 1)}
	for _, tokens := range prompts {
		if tokens > maxModelLen || answer > maxModelLen-tokens {
			return nil, badRequest("max_tokens", "This model's maximum context length is %d tokens. However, your request has %d input tokens and asks for %d output tokens.", maxModelLen, tokens, answer)
		}
		g.promptTokens += tokens
		for range n {
			g.choices = append(g.choices, choice{generation: g, promptTokens: tokens})
		}
	}
	return g, nil
}
