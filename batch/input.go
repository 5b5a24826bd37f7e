package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const (
	// MostLines is how many requests one job may have, as OpenAI's.
	MostLines = 50_000

	// mostProblems is how many of its lines a job names that failed.
	mostProblems = 20

	// mostID bounds a custom_id, in bytes.
	mostID = 512
)

// Line is one request of a file.
type Line struct {
	CustomID string          `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// Input is a file of requests, which were checked.
type Input struct{ lines [][]byte }

// Len is how many requests there are.
func (in Input) Len() int { return len(in.lines) }

// Line returns request i, from 0.
func (in Input) Line(i int) (l Line, err error) {
	if i < 0 || i >= len(in.lines) {
		return Line{}, fmt.Errorf("batch: the file has no line %d", i)
	}
	err = json.Unmarshal(in.lines[i], &l)
	return l, err
}

// Split divides content into its lines, as ReadInput does, without checking them.
func Split(content []byte) (in Input) {
	content = bytes.TrimPrefix(content, []byte("\xEF\xBB\xBF"))
	for line := range bytes.Lines(content) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			in.lines = append(in.lines, line)
		}
	}
	return in
}

// ReadInput reads a file of requests to endpoint. The Input refers to content.
func ReadInput(content []byte, endpoint string) (Input, []Problem) {
	in := Split(content)
	var problems []Problem
	add := func(line int, code, param, format string, args ...any) {
		if len(problems) < mostProblems {
			problems = append(problems, Problem{Code: code, Message: fmt.Sprintf(format, args...), Param: param, Line: line})
		}
	}
	switch {
	case in.Len() == 0:
		add(0, "empty_file", "", "The file has no requests.")
	case in.Len() > MostLines:
		add(0, "too_many_requests", "", "The file has %d requests; one batch may have %d.", in.Len(), MostLines)
		return in, problems
	}
	seen := make(map[string]int, in.Len())
	for i, raw := range in.lines {
		var l Line
		n := i + 1
		if err := json.Unmarshal(raw, &l); err != nil {
			add(n, "invalid_json_line", "", "This line is not parseable as valid JSON.")
			continue
		}
		first, twice := seen[l.CustomID]
		switch body := bytes.TrimSpace(l.Body); {
		case l.CustomID == "" || len(l.CustomID) > mostID:
			add(n, "invalid_custom_id", "custom_id", "custom_id has to be 1 to %d bytes.", mostID)
		case twice:
			add(n, "duplicate_custom_id", "custom_id", "The custom_id for this request is a duplicate of the one in line %d.", first)
		case l.Method != "POST":
			add(n, "invalid_method", "method", "The method has to be POST.")
		case l.URL != endpoint:
			add(n, "mismatched_endpoint", "url", "The url has to be the endpoint of the batch, %s.", endpoint)
		case len(body) == 0 || body[0] != '{':
			add(n, "missing_body", "body", "The body has to be a JSON object.")
		}
		seen[l.CustomID] = n
	}
	return in, problems
}
