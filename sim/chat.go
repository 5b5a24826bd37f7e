package sim

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// tool is a function that the model may call.
type tool struct {
	Function struct {
		Name       string `json:"name"`
		Parameters schema `json:"parameters"`
	} `json:"function"`
}

// responseFormat asks for JSON.
type responseFormat struct {
	Type       string `json:"type"` // text, json_object, json_schema
	JSONSchema struct {
		Schema schema `json:"schema"`
	} `json:"json_schema"`
}

func (s *Server) serveChat(w http.ResponseWriter, r *http.Request) error {
	q, _, err := s.readRequest(w, r)
	if err != nil {
		return err
	}
	if len(q.Messages) == 0 {
		return badRequest("messages", "messages must hold at least one message.")
	}
	begun, messages, err := q.begun()
	if err != nil {
		return err
	}
	var bytes int
	for _, m := range messages {
		bytes += m.Content.bytes
		q.text += m.Content.text
	}
	q.said = wordsIn(begun)
	q.text += begun
	wire, err := s.chatWireFor(q)
	if err != nil {
		return err
	}
	return s.generate(w, r, q, []int{tokensOf(bytes) + q.said}, wire.speak)
}

// chatWireFor is the shape of the answer to q: a call of its first tool, JSON,
// an answer with its reasoning, or plain text. Who hands in what a tool
// returned gets text.
func (s *Server) chatWireFor(q *request) (*wire, error) {
	t, err := q.calledTool()
	switch {
	case err != nil:
		return nil, err
	case t != nil:
		return toolWire(t), nil
	case q.ResponseFormat != nil && q.ResponseFormat.Type != "text":
		return jsonWire(q.ResponseFormat.JSONSchema.Schema.fill()), nil
	case s.quirks.reasoning:
		return reasoningWire, nil
	}
	return s.plainWire(chatWire, q), nil
}

// plainWire is w, the shape of an answer that is text alone, for q.
func (s *Server) plainWire(w *wire, q *request) *wire {
	if s.quirks.follows {
		return w.follows(q.text)
	}
	if s.quirks.twoWords {
		return w.twoWords()
	}
	return w.goesOn(q.said)
}

// calledTool is the tool that the answer calls, nil if none.
func (q *request) calledTool() (*tool, error) {
	if len(q.Tools) == 0 || bytes.Equal(q.ToolChoice, []byte(`"none"`)) || q.Messages[len(q.Messages)-1].Role == "tool" {
		return nil, nil
	}
	var named tool
	if json.Unmarshal(q.ToolChoice, &named) != nil || named.Function.Name == "" {
		return &q.Tools[0], nil
	}
	for i := range q.Tools {
		if q.Tools[i].Function.Name == named.Function.Name {
			return &q.Tools[i], nil
		}
	}
	return nil, badRequest("tool_choice", "The tool %q is not among the tools.", named.Function.Name)
}

// toolWire is chatWire for a call of t, whose arguments are the tokens.
func toolWire(t *tool) *wire {
	w := *chatWire
	name := quote(t.Function.Name)
	w.role = `"delta":{"role":"assistant","content":null,"tool_calls":[{"id":"call_0123456789abcdef","type":"function","index":0,"function":{"name":` +
		name + `,"arguments":""}}]},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	w.before, w.after = `"delta":{"tool_calls":[{"index":0,"function":{"arguments":"`, `"}}]},"logprobs":null,"finish_reason":null}]}`+"\n\n"
	w.finish = `"delta":{},"logprobs":null,"finish_reason":"tool_calls","stop_reason":null}]}` + "\n\n"
	arguments := t.Function.Parameters.fill()
	w.piece = arguments.piece
	w.choice = func(index int, _, text string) any {
		c := chatChoice{Index: index, FinishReason: "tool_calls"}
		c.Message.Role = "assistant"
		c.Message.ToolCalls = []toolCall{{ID: "call_0123456789abcdef", Type: "function"}}
		c.Message.ToolCalls[0].Function.Name, c.Message.ToolCalls[0].Function.Arguments = t.Function.Name, text
		return c
	}
	return &w
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// jsonWire is chatWire for an answer that is a JSON object. It ends by itself:
// clients that parse it refuse one that was cut off by its length.
func jsonWire(object filled) *wire {
	w := *chatWire
	w.finish = `"delta":{"content":""},"logprobs":null,"finish_reason":"stop","stop_reason":null}]}` + "\n\n"
	w.piece = object.piece
	w.choice = func(index int, _, text string) any {
		c := chatWire.choice(index, "", text).(chatChoice)
		c.FinishReason = "stop"
		return c
	}
	return &w
}

// reasoningWire is chatWire for an answer whose first half is reasoning.
var reasoningWire = func() *wire {
	w := *chatWire
	w.thought = `"delta":{"reasoning_content":"`
	w.choice = func(index int, reasoning, text string) any {
		c := chatWire.choice(index, "", text).(chatChoice)
		c.Message.Reasoning = reasoning
		return c
	}
	return &w
}()
