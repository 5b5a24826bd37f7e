package providers

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/pacer-dev/pacer/internal/openai"
)

// StatusOverloaded is what Anthropic answers when it is overloaded.
const StatusOverloaded = 529

// reasonStart is how much of an error answer is searched for its reason.
const reasonStart = 4 << 10

// Condition is what an answer's status says of its backend.
type Condition uint8

// A backend that is Loading or Full is alive: neither is a failure of it.
const (
	Sound   Condition = iota // it answered; an error may be the client's own
	Failing                  // something is wrong that another backend may not have
	Loading                  // the model is not there yet
	Full                     // it has as much as it takes: another may have room
)

// String returns sound, failing, loading or full.
func (c Condition) String() string { return [...]string{"sound", "failing", "loading", "full"}[c] }

// Condition tells from an answer's status, and from body, which is its start,
// how the backend is. A 429 is Full, and so is a 503 that says so; 502, 504,
// Anthropic's 529 and any other 503 are Failing.
//
// A 500 is Sound: llama.cpp gives it to a client's bad JSON. So is a refusal, as
// 401: whose fault it is shows only where another backend is asked.
func (b *Backend) Condition(status int, body []byte) Condition {
	switch status {
	case http.StatusTooManyRequests:
		return Full
	case http.StatusBadGateway, http.StatusGatewayTimeout, StatusOverloaded:
		return Failing
	case http.StatusServiceUnavailable:
		return unavailable(body[:min(len(body), reasonStart)])
	}
	return Sound
}

// AboutModel reports whether a 404 whose body begins so is about a model, or
// about this one by name, and not about the address that was asked. Servers
// without that endpoint speak of paths and files, or say nothing; or that the model
// does not support it.
func AboutModel(body []byte, model string) bool {
	body = bytes.ToLower(body[:min(len(body), reasonStart)])
	return !containsAny(body, "does not support") &&
		(containsAny(body, "model", "deployment") || len(model) > 3 && containsAny(body, strings.ToLower(model)))
}

// AboutKey reports whether a 400 with this message is about the key that it was
// sent with: Gemini has no other status for it. A message may repeat what the
// client wrote, but does not begin with it.
func AboutKey(message string) bool {
	return slices.ContainsFunc([]string{"API key not valid", "API key expired", "API Key not found"}, func(words string) bool {
		return strings.HasPrefix(message, words)
	})
}

// TooLong reports whether an error answer says that the prompt, or what was asked
// for with it, is longer than the model's context. Only some engines have a code for
// that; the others are known by their words.
func TooLong(status int, says openai.Failure) bool {
	if status != http.StatusBadRequest && status != http.StatusRequestEntityTooLarge && status != http.StatusUnprocessableEntity {
		return false
	}
	if says.Code == "context_length_exceeded" || says.Type == "exceed_context_size_error" {
		return true
	}
	return containsAny(bytes.ToLower([]byte(says.Message)),
		"maximum context length", "context length is only", // OpenAI, vLLM, Mistral, OpenRouter
		"longer than the maximum model length",       // vLLM, of prompts that it encoded
		"longer than the model's context length",     // SGLang
		"exceeds the model's maximum context",        // SGLang, with max_tokens
		"exceeds the available context size",         // llama.cpp
		"`inputs` tokens + `max_new_tokens` must be", // TGI
		"prompt is too long", "exceed context limit", // Anthropic
		"exceeds the maximum number of tokens allowed", // Gemini
		"input is too long for requested model",        // Bedrock
	)
}

func containsAny(body []byte, all ...string) bool {
	return slices.ContainsFunc(all, func(words string) bool { return bytes.Contains(body, []byte(words)) })
}

// unavailable knows the words of a 503. Those who load: llama.cpp ("Loading
// model"), TGI and those around it ("Model … is currently loading"). Those who
// are full: SGLang ("The request queue is full."), Ollama ("server busy, please
// try again.  maximum pending requests exceeded"), OpenAI ("The engine is
// currently overloaded").
func unavailable(body []byte) Condition {
	body = bytes.ToLower(body)
	switch {
	case containsAny(body, "loading model", "is loading", "currently loading"):
		return Loading
	case containsAny(body, "queue is full", "maximum pending requests", "currently overloaded"):
		return Full
	}
	return Failing
}
