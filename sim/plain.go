package sim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// The endpoints of this file do not decode: they answer at once.

// dimensions is the length of every embedding.
const dimensions = 8

// texts is one text or a list of texts. Only their lengths are kept.
type texts []int

func (t *texts) UnmarshalJSON(data []byte) error {
	var p prompt
	if err := p.UnmarshalJSON(data); err != nil {
		return errors.New("input must be a text, a list of token ids, or a list of either")
	}
	*t = p.tokens
	return nil
}

type plainRequest struct {
	Input     texts    `json:"input"`
	Format    string   `json:"encoding_format"`
	Documents []string `json:"documents"`
	Query     string   `json:"query"`
	N         int      `json:"n"`
}

// atOnce serves what answer answers to a request, whose model is named.
func atOnce(answer func(s *Server, model string, p plainRequest) any) func(*Server, http.ResponseWriter, *http.Request) error {
	return func(s *Server, w http.ResponseWriter, r *http.Request) error {
		q, body, err := s.readRequest(w, r)
		if err != nil {
			return err
		}
		var p plainRequest
		if err := json.Unmarshal(body, &p); err != nil {
			return badRequest("input", "The body is not what is expected: %v", err)
		}
		writeJSON(w, http.StatusOK, answer(s, q.Model, p))
		return nil
	}
}

func (s *Server) embeddings(model string, p plainRequest) any {
	type embedding struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	answer := struct {
		Object string      `json:"object"`
		Data   []embedding `json:"data"`
		Model  string      `json:"model"`
		Usage  usage       `json:"usage"`
	}{Object: "list", Model: model, Data: []embedding{}}
	for i, tokens := range p.Input {
		vector := make([]float32, dimensions)
		for j := range vector {
			vector[j] = float32(math.Sin(float64(tokens + j)))
		}
		e := embedding{Object: "embedding", Index: i, Embedding: vector}
		if p.Format == "base64" {
			var b []byte
			for _, x := range vector {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
			}
			e.Embedding = base64.StdEncoding.EncodeToString(b)
		}
		answer.Data = append(answer.Data, e)
		answer.Usage.PromptTokens += tokens
	}
	answer.Usage.TotalTokens = answer.Usage.PromptTokens
	return answer
}

func (s *Server) rerank(model string, p plainRequest) any {
	type result struct {
		Index int     `json:"index"`
		Score float64 `json:"relevance_score"`
	}
	answer := struct {
		ID      string   `json:"id"`
		Model   string   `json:"model"`
		Results []result `json:"results"`
	}{ID: s.newID("rerank"), Model: model, Results: []result{}}
	for i := range p.Documents {
		answer.Results = append(answer.Results, result{Index: i, Score: 1 / float64(i+1)})
	}
	return answer
}

func (s *Server) moderations(model string, p plainRequest) any {
	type result struct {
		Flagged    bool               `json:"flagged"`
		Categories map[string]bool    `json:"categories"`
		Scores     map[string]float64 `json:"category_scores"`
	}
	answer := struct {
		ID      string   `json:"id"`
		Model   string   `json:"model"`
		Results []result `json:"results"`
	}{ID: s.newID("modr"), Model: model, Results: []result{}}
	for range p.Input {
		answer.Results = append(answer.Results, result{Categories: map[string]bool{"violence": false}, Scores: map[string]float64{"violence": 0.01}})
	}
	return answer
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func (s *Server) images(_ string, p plainRequest) any {
	type image struct {
		B64 string `json:"b64_json"`
	}
	answer := struct {
		Created int64   `json:"created"`
		Data    []image `json:"data"`
	}{Created: 1, Data: []image{}}
	for range min(max(p.N, 1), maxChoices) {
		answer.Data = append(answer.Data, image{pixel})
	}
	return answer
}

// serveSpeech answers with bytes that are no text, in pieces.
func (s *Server) serveSpeech(w http.ResponseWriter, r *http.Request) error {
	if _, _, err := s.readRequest(w, r); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "audio/mpeg")
	out := eventWriter{w: w, flush: http.NewResponseController(w).Flush}
	for i := range 16 {
		for j := range 256 {
			out.buffer = append(out.buffer, byte(i+j))
		}
		out.send()
	}
	return nil
}

// serveTranscriptions reads a form whose model may come after the file.
func (s *Server) serveTranscriptions(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	form, err := r.MultipartReader()
	if err != nil {
		return badRequest("file", "The body is no form: %v", err)
	}
	fields := map[string]string{}
	file := int64(-1)
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return bodyError(err)
		}
		if part.FormName() == "file" {
			if file, err = io.Copy(io.Discard, part); err != nil {
				return bodyError(err)
			}
			continue
		}
		value, err := io.ReadAll(io.LimitReader(part, 4096))
		if err != nil {
			return bodyError(err)
		}
		fields[part.FormName()] = string(value)
	}
	switch {
	case file < 0:
		return badRequest("file", "file must be given.")
	case !s.serves(fields["model"]):
		return &apiError{status: http.StatusNotFound, kind: "NotFoundError", param: "model", message: "The model `" + fields["model"] + "` does not exist."}
	}
	text := "heard " + strconv.FormatInt(file, 10) + " bytes"
	if fields["stream"] == "true" {
		transcribe(w, text)
		return nil
	}
	if f := fields["response_format"]; f == "text" || f == "srt" || f == "vtt" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text+"\n")
		return nil
	}
	writeJSON(w, http.StatusOK, struct {
		Text string `json:"text"`
	}{text})
	return nil
}

// transcribe streams text, a word an event.
func transcribe(w http.ResponseWriter, text string) {
	type event struct {
		Type  string  `json:"type"`
		Delta *string `json:"delta,omitempty"`
		Text  *string `json:"text,omitempty"`
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	out := eventWriter{w: w, flush: http.NewResponseController(w).Flush}
	for i, word := range strings.Fields(text) {
		if i > 0 {
			word = " " + word
		}
		out.buffer = appendData(out.buffer, event{Type: "transcript.text.delta", Delta: &word})
		out.send()
	}
	out.buffer = appendData(out.buffer, event{Type: "transcript.text.done", Text: &text})
	out.buffer = append(out.buffer, "data: [DONE]\n\n"...)
	out.send()
}

// appendData appends an event without a name.
func appendData(b []byte, data any) []byte {
	b = append(append(b, "data: "...), marshal(data)...)
	return append(b, "\n\n"...)
}
