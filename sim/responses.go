package sim

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
)

// maxStored bounds the answers that are kept for previous_response_id.
const maxStored = 1000

// responsesRequest is what the engine understands of a request to
// /v1/responses.
type responsesRequest struct {
	Input        responsesInput `json:"input"`
	Instructions string         `json:"instructions"`
	Previous     string         `json:"previous_response_id"`
	Store        *bool          `json:"store"`
	MaxTokens    *int           `json:"max_output_tokens"`
	Tools        []struct {
		Type       string `json:"type"`
		Name       string `json:"name"`
		Parameters schema `json:"parameters"`
	} `json:"tools"`
	Text struct {
		Format struct {
			Type   string `json:"type"`
			Schema schema `json:"schema"`
		} `json:"format"`
	} `json:"text"`
}

// responsesInput is a text or a list of items. Only its length is kept, and
// whether a tool's output is in it.
type responsesInput struct {
	bytes  int
	output bool
}

func (in *responsesInput) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		in.bytes = len(text)
		return nil
	}
	var items []struct {
		Type    string  `json:"type"`
		Content content `json:"content"`
		Output  string  `json:"output"`
	}
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	for _, item := range items {
		in.bytes += item.Content.bytes + len(item.Output)
		in.output = in.output || item.Type == "function_call_output"
	}
	return nil
}

func (s *Server) serveResponses(w http.ResponseWriter, r *http.Request) error {
	q, body, err := s.readRequest(w, r)
	if err != nil {
		return err
	}
	var more responsesRequest
	if err := json.Unmarshal(body, &more); err != nil {
		return badRequest("input", "The body is not what is expected: %v", err)
	}
	if more.Input.bytes == 0 {
		return badRequest("input", "input must hold something.")
	}
	if more.Previous != "" && !s.stored.has(more.Previous) {
		return &apiError{status: http.StatusNotFound, kind: "invalid_request_error", param: "previous_response_id", message: "Response with id '" + more.Previous + "' not found."}
	}
	q.MaxTokens = more.MaxTokens
	return s.generate(w, r, q, []int{tokensOf(more.Input.bytes + len(more.Instructions))}, func(a *answer) voice {
		v := &responsesVoice{answer: a}
		a.id = strings.Replace(a.id, "chatcmpl-", "resp_", 1)
		switch {
		case len(more.Tools) > 0 && more.Tools[0].Type == "function" && !more.Input.output:
			v.call, v.object = more.Tools[0].Name, more.Tools[0].Parameters.fill()
		case more.Text.Format.Type == "json_schema":
			v.object = more.Text.Format.Schema.fill()
		}
		if more.Store == nil || *more.Store {
			s.stored.add(a.id)
		}
		return v
	})
}

// serveResponse shows or deletes a stored answer.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) error {
	id, found := strings.CutPrefix(r.URL.Path, "/v1/responses/")
	if !found || !s.stored.has(id) {
		return &apiError{status: http.StatusNotFound, kind: "invalid_request_error", message: "Response with id '" + id + "' not found."}
	}
	type deleted struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}
	if r.Method == http.MethodDelete {
		s.stored.remove(id)
		writeJSON(w, http.StatusOK, deleted{id, "response", true})
		return nil
	}
	v := responsesVoice{answer: &answer{id: id, model: s.names[0], g: &generation{maxTokens: 1}}}
	writeJSON(w, http.StatusOK, v.body())
	return nil
}

// responsesVoice is the voice of /v1/responses.
type responsesVoice struct {
	answer   *answer
	call     string // the function that is called, "" = none
	object   filled // its arguments, or the JSON answer; zero = words
	sequence int
	text     []byte // so far
}

type responsesUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

type responsesObject struct {
	ID                string          `json:"id"`
	Object            string          `json:"object"`
	CreatedAt         int64           `json:"created_at"`
	Status            string          `json:"status"`
	Error             *struct{}       `json:"error"`
	Model             string          `json:"model"`
	Output            []any           `json:"output"`
	ParallelToolCalls bool            `json:"parallel_tool_calls"`
	ToolChoice        string          `json:"tool_choice"`
	Tools             []struct{}      `json:"tools"`
	Usage             *responsesUsage `json:"usage"`
}

type responsesText struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
}

type responsesMessage struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Status  string          `json:"status"`
	Role    string          `json:"role"`
	Content []responsesText `json:"content"`
}

type responsesCall struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// responsesEvent is one event of the stream. Only the members that it has are written.
type responsesEvent struct {
	Type         string           `json:"type"`
	Sequence     int              `json:"sequence_number"`
	Response     *responsesObject `json:"response,omitempty"`
	OutputIndex  *int             `json:"output_index,omitempty"`
	ItemID       string           `json:"item_id,omitempty"`
	Item         any              `json:"item,omitempty"`
	ContentIndex *int             `json:"content_index,omitempty"`
	Part         *responsesText   `json:"part,omitempty"`
	Delta        *string          `json:"delta,omitempty"`
	Text         *string          `json:"text,omitempty"`
	Name         string           `json:"name,omitempty"`
	Arguments    *string          `json:"arguments,omitempty"`
	Logprobs     *[]struct{}      `json:"logprobs,omitempty"`
}

func (v *responsesVoice) event(b []byte, e responsesEvent) []byte {
	e.Sequence = v.sequence
	v.sequence++
	return appendEvent(b, e.Type, e)
}

// appendEvent appends an event with a name.
func appendEvent(b []byte, name string, data any) []byte {
	b = append(b, "event: "...)
	b = append(b, name...)
	return appendData(append(b, '\n'), data)
}

// response is the answer as far as it has come.
func (v *responsesVoice) response(status string) *responsesObject {
	o := &responsesObject{
		ID: v.answer.id, Object: "response", CreatedAt: v.answer.created, Status: status, Model: v.answer.model,
		Output: []any{}, ToolChoice: "auto", Tools: []struct{}{}, ParallelToolCalls: true,
	}
	if status != "completed" {
		return o
	}
	o.Output = append(o.Output, v.item(status, string(v.text)))
	u := &responsesUsage{Input: v.answer.g.promptTokens, Output: v.answer.g.maxTokens}
	u.Total = u.Input + u.Output
	o.Usage = u
	return o
}

// item is the one item of the answer.
func (v *responsesVoice) item(status, text string) any {
	if v.call != "" {
		return responsesCall{ID: "fc_" + v.answer.id, Type: "function_call", Status: status, CallID: "call_" + v.answer.id, Name: v.call, Arguments: text}
	}
	m := responsesMessage{ID: "msg_" + v.answer.id, Type: "message", Status: status, Role: "assistant", Content: []responsesText{}}
	if status == "completed" {
		m.Content = append(m.Content, responsesText{Type: "output_text", Text: text, Annotations: []struct{}{}})
	}
	return m
}

func (v *responsesVoice) open(b []byte, _ int) []byte {
	for _, name := range []string{"response.created", "response.in_progress"} {
		b = v.event(b, responsesEvent{Type: name, Response: v.response("in_progress")})
	}
	b = v.event(b, responsesEvent{Type: "response.output_item.added", OutputIndex: new(0), Item: v.item("in_progress", "")})
	if v.call == "" {
		part := &responsesText{Type: "output_text", Annotations: []struct{}{}}
		b = v.event(b, responsesEvent{Type: "response.content_part.added", OutputIndex: new(0), ContentIndex: new(0), ItemID: "msg_" + v.answer.id, Part: part})
	}
	return b
}

func (v *responsesVoice) token(b []byte, choice, t int) []byte {
	text := v.answer.piece(v.object, choice, t)
	v.text = append(v.text, text...)
	if v.call != "" {
		return v.event(b, responsesEvent{Type: "response.function_call_arguments.delta", OutputIndex: new(0), ItemID: "fc_" + v.answer.id, Delta: &text})
	}
	return v.event(b, responsesEvent{Type: "response.output_text.delta", OutputIndex: new(0), ContentIndex: new(0), ItemID: "msg_" + v.answer.id, Delta: &text, Logprobs: &[]struct{}{}})
}

func (v *responsesVoice) finish(b []byte, _ int) []byte {
	text := string(v.text)
	if v.call != "" {
		b = v.event(b, responsesEvent{Type: "response.function_call_arguments.done", OutputIndex: new(0), ItemID: "fc_" + v.answer.id, Name: v.call, Arguments: &text})
	} else {
		part := &responsesText{Type: "output_text", Text: text, Annotations: []struct{}{}}
		b = v.event(b, responsesEvent{Type: "response.output_text.done", OutputIndex: new(0), ContentIndex: new(0), ItemID: "msg_" + v.answer.id, Text: &text, Logprobs: &[]struct{}{}})
		b = v.event(b, responsesEvent{Type: "response.content_part.done", OutputIndex: new(0), ContentIndex: new(0), ItemID: "msg_" + v.answer.id, Part: part})
	}
	return v.event(b, responsesEvent{Type: "response.output_item.done", OutputIndex: new(0), Item: v.item("completed", text)})
}

func (v *responsesVoice) end(b []byte) []byte {
	return v.event(b, responsesEvent{Type: "response.completed", Response: v.response("completed")})
}

func (v *responsesVoice) body() any {
	for t := range v.answer.g.maxTokens {
		v.text = append(v.text, v.answer.piece(v.object, 0, t)...)
	}
	return v.response("completed")
}

// idSet is the ids of the latest answers. The zero value is empty. It is safe
// for concurrent use.
type idSet struct {
	mu    sync.Mutex
	ids   map[string]bool
	order []string
}

func (s *idSet) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

func (s *idSet) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, id)
}

func (s *idSet) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	if len(s.order) >= maxStored {
		delete(s.ids, s.order[0])
		s.order = append(s.order[:0], s.order[1:]...)
	}
	s.ids[id] = true
	s.order = append(s.order, id)
}
