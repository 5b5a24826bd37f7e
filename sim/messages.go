package sim

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// messagesRequest is what the engine understands of a request to
// /v1/messages, beside what it has in common with chat.
type messagesRequest struct {
	System content `json:"system"`
	Tools  []struct {
		Name        string `json:"name"`
		InputSchema schema `json:"input_schema"`
	} `json:"tools"`
	Messages []struct {
		Content toolResults `json:"content"`
	} `json:"messages"`
}

// toolResults says whether what a tool returned is in a message.
type toolResults bool

func (t *toolResults) UnmarshalJSON(data []byte) error {
	var parts []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(data, &parts) != nil {
		return nil // a text
	}
	for _, p := range parts {
		*t = *t || p.Type == "tool_result"
	}
	return nil
}

func (s *Server) serveMessages(w http.ResponseWriter, r *http.Request) error {
	err := s.message(w, r)
	var e *apiError
	if err != nil && errors.As(err, &e) {
		writeMessagesError(w, e)
		return nil
	}
	return err
}

func (s *Server) message(w http.ResponseWriter, r *http.Request) error {
	q, body, err := s.readRequest(w, r)
	if err != nil {
		return err
	}
	var more messagesRequest
	if err := json.Unmarshal(body, &more); err != nil {
		return badRequest("", "The body is not what is expected: %v", err)
	}
	switch {
	case len(q.Messages) == 0:
		return badRequest("messages", "messages: at least one message is required")
	case q.MaxTokens == nil:
		return badRequest("max_tokens", "max_tokens: Field required")
	}
	bytes := more.System.bytes
	q.text = more.System.text
	for _, m := range q.Messages {
		bytes += m.Content.bytes
		q.text += m.Content.text
	}
	return s.generate(w, r, q, []int{tokensOf(bytes)}, func(a *answer) voice {
		v := &messagesVoice{answer: a}
		a.id = strings.Replace(a.id, "chatcmpl-", "msg_", 1)
		if len(more.Tools) > 0 && !bool(more.Messages[len(more.Messages)-1].Content) {
			v.call, v.object = more.Tools[0].Name, more.Tools[0].InputSchema.fill()
		}
		return v
	})
}

// writeMessagesError answers in Anthropic's shape.
func writeMessagesError(w http.ResponseWriter, e *apiError) {
	kind := "api_error"
	switch e.status {
	case http.StatusBadRequest:
		kind = "invalid_request_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	}
	type errorObject struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	writeJSON(w, e.status, struct {
		Type  string      `json:"type"`
		Error errorObject `json:"error"`
	}{"error", errorObject{kind, e.message}})
}

// messagesVoice is the voice of /v1/messages.
type messagesVoice struct {
	answer *answer
	call   string // the tool that is used, "" = none
	object filled // its input
}

type messagesUsage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

type messagesObject struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`
	Role         string        `json:"role"`
	Model        string        `json:"model"`
	Content      []any         `json:"content"`
	StopReason   *string       `json:"stop_reason"`
	StopSequence *string       `json:"stop_sequence"`
	Usage        messagesUsage `json:"usage"`
}

type messagesText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type messagesTool struct {
	Type  string          `json:"type"`
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type messagesDelta struct {
	Type        string  `json:"type,omitempty"`
	Text        *string `json:"text,omitempty"`
	PartialJSON *string `json:"partial_json,omitempty"`
	StopReason  string  `json:"stop_reason,omitempty"`
}

type messagesEvent struct {
	Type    string          `json:"type"`
	Message *messagesObject `json:"message,omitempty"`
	Index   *int            `json:"index,omitempty"`
	Block   any             `json:"content_block,omitempty"`
	Delta   *messagesDelta  `json:"delta,omitempty"`
	Usage   *messagesUsage  `json:"usage,omitempty"`
}

// message is the answer as it begins.
func (v *messagesVoice) message(output int) *messagesObject {
	return &messagesObject{
		ID: v.answer.id, Type: "message", Role: "assistant", Model: v.answer.model, Content: []any{},
		Usage: messagesUsage{Input: v.answer.g.promptTokens, Output: output},
	}
}

func (v *messagesVoice) stopReason() string {
	if v.call != "" {
		return "tool_use"
	}
	return "max_tokens"
}

func (v *messagesVoice) open(b []byte, _ int) []byte {
	var block any = messagesText{Type: "text"}
	if v.call != "" {
		block = messagesTool{Type: "tool_use", ID: "toolu_" + v.answer.id, Name: v.call, Input: json.RawMessage("{}")}
	}
	b = appendEvent(b, "message_start", messagesEvent{Type: "message_start", Message: v.message(1)})
	b = appendEvent(b, "content_block_start", messagesEvent{Type: "content_block_start", Index: new(0), Block: block})
	return appendEvent(b, "ping", messagesEvent{Type: "ping"})
}

func (v *messagesVoice) token(b []byte, choice, t int) []byte {
	text := v.answer.piece(v.object, choice, t)
	d := &messagesDelta{Type: "text_delta", Text: &text}
	if v.call != "" {
		d = &messagesDelta{Type: "input_json_delta", PartialJSON: &text}
	}
	return appendEvent(b, "content_block_delta", messagesEvent{Type: "content_block_delta", Index: new(0), Delta: d})
}

func (v *messagesVoice) finish(b []byte, _ int) []byte {
	return appendEvent(b, "content_block_stop", messagesEvent{Type: "content_block_stop", Index: new(0)})
}

func (v *messagesVoice) end(b []byte) []byte {
	b = appendEvent(b, "message_delta", messagesEvent{
		Type: "message_delta", Delta: &messagesDelta{StopReason: v.stopReason()},
		Usage: &messagesUsage{Input: v.answer.g.promptTokens, Output: v.answer.g.maxTokens},
	})
	return appendEvent(b, "message_stop", messagesEvent{Type: "message_stop"})
}

func (v *messagesVoice) body() any {
	o := v.message(v.answer.g.maxTokens)
	o.StopReason = new(v.stopReason())
	var text []byte
	for t := range v.answer.g.maxTokens {
		text = append(text, v.answer.piece(v.object, 0, t)...)
	}
	if v.call != "" {
		o.Content = append(o.Content, messagesTool{Type: "tool_use", ID: "toolu_" + v.answer.id, Name: v.call, Input: text})
	} else {
		o.Content = append(o.Content, messagesText{Type: "text", Text: string(text)})
	}
	return o
}
