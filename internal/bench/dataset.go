package bench

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of a dataset.
const (
	MostPrompts = 100_000
	mostPrompt  = 4 << 20 // bytes of one
	mostHeader  = 1 << 16 // bytes that are looked at to find its form
)

// Sample is a prompt of a dataset, and how many tokens its answer has at most; 0 = the
// dataset does not say.
type Sample struct {
	Text   string
	Output int
}

// Fields of objects, and columns, that datasets of the field have; the first one that is
// there counts.
var (
	promptNames = []string{"prompt", "text", "question", "instruction", "query", "input", "content", "turns", "messages", "conversations", "conversation"}
	outputNames = []string{"output_tokens", "output_tokens_count", "output_len", "max_tokens", "completion_tokens"}
)

// ReadDataset reads at most MostPrompts prompts: JSON (a list, as ShareGPT is, or an
// object after the other), CSV with a header, or a text on each line. name is that of the
// file. What has no prompt is left out.
func ReadDataset(name string, from io.Reader) ([]Sample, error) {
	in := bufio.NewReaderSize(from, mostHeader)
	start, err := in.Peek(mostHeader)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if bytes.HasPrefix(start, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3) // a mark of the byte order; it was peeked
		start = start[3:]
	}
	ending := strings.ToLower(filepath.Ext(name))
	first := bytes.TrimLeft(start, " \t\r\n")
	var d dataset
	switch {
	case bytes.HasPrefix(start, []byte("PAR1")):
		return nil, errors.New("it is Parquet; write JSON, one object a line")
	case bytes.HasPrefix(start, []byte("\x1f\x8b")), bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")):
		return nil, errors.New("it is compressed; unpack it first")
	case bytes.IndexByte(start, 0) >= 0:
		return nil, errors.New("it is no text in UTF-8")
	case ending == ".csv", ending == ".tsv":
		err = d.table(in, map[string]rune{".csv": ',', ".tsv": '\t'}[ending])
	case ending == ".json", ending == ".jsonl", ending != ".txt" && isJSON(first):
		err = d.documents(in, bytes.HasPrefix(first, []byte("[")))
	default:
		err = d.lines(in)
	}
	switch {
	case err != nil:
		return nil, err
	case len(d.samples) > 0:
		return d.samples, nil
	case len(d.seen) > 0:
		return nil, fmt.Errorf("it has no prompts, but only %s; a prompt is in %s", strings.Join(d.seen, ", "), strings.Join(promptNames, ", "))
	}
	return nil, errors.New("it has no prompts; write one on each line")
}

// isJSON reports whether text, the beginning of a file, is JSON: a list, or values. A
// prompt may begin with a bracket or a quote, too.
func isJSON(text []byte) bool {
	line, _, whole := bytes.Cut(text, []byte("\n"))
	if whole && json.Valid(line) {
		return line[0] == '{' || line[0] == '"' || line[0] == '['
	}
	if bytes.HasPrefix(text, []byte("[")) {
		rest := bytes.TrimLeft(text[1:], " \t\r\n")
		return len(rest) > 0 && (rest[0] == '{' || rest[0] == '"')
	}
	var v any
	err := json.NewDecoder(bytes.NewReader(text)).Decode(&v)
	object := bytes.HasPrefix(text, []byte("{")) || bytes.HasPrefix(text, []byte(`"`)) && !whole
	return object && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) // longer than what was looked at
}

// dataset is what was read so far.
type dataset struct {
	samples []Sample
	seen    []string // fields of what has no prompt, a few
}

func (d *dataset) full() bool { return len(d.samples) >= MostPrompts }

// lines reads a text on each line.
func (d *dataset) lines(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostPrompt)
	for lines.Scan() && !d.full() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			d.samples = append(d.samples, Sample{Text: text})
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a line is longer than %d MiB", mostPrompt>>20)
	}
	return lines.Err()
}

// documents reads JSON: a list, or values one after the other.
func (d *dataset) documents(in io.Reader, list bool) error {
	lines := &lineCounter{Reader: in}
	values := json.NewDecoder(lines)
	if list {
		if _, err := values.Token(); err != nil {
			return lines.wrong(values, err)
		}
	}
	for !d.full() && (!list || values.More()) {
		var v json.RawMessage
		if err := values.Decode(&v); err == io.EOF && !list {
			return nil
		} else if err != nil {
			return lines.wrong(values, err)
		}
		d.value(v)
	}
	if list && !d.full() {
		if _, err := values.Token(); err != nil {
			return lines.wrong(values, err)
		}
	}
	return nil
}

// lineCounter counts lines, for errors.
type lineCounter struct {
	io.Reader
	ends []int64 // where lines end
	at   int64
}

func (c *lineCounter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	for i, b := range p[:n] {
		if b == '\n' && len(c.ends) < 10*MostPrompts {
			c.ends = append(c.ends, c.at+int64(i))
		}
	}
	c.at += int64(n)
	return n, err
}

func (c *lineCounter) wrong(values *json.Decoder, err error) error {
	at := values.InputOffset()
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		at = c.at
	}
	if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) && bad.Offset > at {
		at = bad.Offset
	}
	line, _ := slices.BinarySearch(c.ends, at)
	if err == io.ErrUnexpectedEOF || err == io.EOF {
		return fmt.Errorf("line %d: the JSON ends in the middle", line+1)
	}
	return fmt.Errorf("line %d is no JSON: %w", line+1, err)
}

// value takes a prompt out of v.
func (d *dataset) value(v json.RawMessage) {
	var text string
	if json.Unmarshal(v, &text) == nil {
		d.add(text, 0)
		return
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) != nil {
		return
	}
	output := 0
	for _, name := range outputNames {
		var tokens float64
		if json.Unmarshal(object[name], &tokens) == nil && tokens >= 1 {
			output = int(min(math.Round(tokens), mostLength))
			break
		}
	}
	for _, name := range promptNames {
		text := textOf(object[name])
		if name == "turns" { // all of a user
			var turns []json.RawMessage
			if json.Unmarshal(object[name], &turns) == nil && len(turns) > 0 {
				if text = textOf(turns[0]); text == "" {
					text = textOf(slices.Concat([]byte("["), turns[0], []byte("]")))
				}
			}
		}
		if text != "" {
			if more := textOf(object["input"]); name == "instruction" && more != "" {
				text += "\n" + more // as Alpaca's are
			}
			d.add(text, output)
			return
		}
	}
	if len(d.seen) == 0 {
		for name := range object {
			d.seen = append(d.seen, fmt.Sprintf("%.40q", name))
		}
		slices.Sort(d.seen)
		d.seen = d.seen[:min(len(d.seen), 8)]
	}
}

// turn is one message of a conversation, as chats and ShareGPT have them.
type turn struct {
	Role    string          `json:"role"`
	From    string          `json:"from"`
	Content json.RawMessage `json:"content"`
	Value   json.RawMessage `json:"value"`
	Text    json.RawMessage `json:"text"` // of a part
}

// textOf is the prompt in v: a text, the texts of its parts, or of a conversation what
// the user says first, with what stands before it.
func textOf(v json.RawMessage) string {
	var text string
	if len(v) == 0 || json.Unmarshal(v, &text) == nil {
		return strings.TrimSpace(text)
	}
	var turns []turn
	if json.Unmarshal(v, &turns) != nil {
		return ""
	}
	var out []string
	for _, t := range turns {
		for _, part := range []json.RawMessage{t.Content, t.Value, t.Text} {
			if text := textOf(part); text != "" {
				out = append(out, text)
			}
		}
		switch t.Role + t.From {
		case "user", "human":
			return strings.Join(out, "\n")
		case "assistant", "gpt":
			return "" // the answer comes first: nobody has asked
		}
	}
	return strings.Join(out, "\n")
}

// table reads CSV with a header.
func (d *dataset) table(in io.Reader, comma rune) error {
	rows := csv.NewReader(in)
	rows.Comma, rows.ReuseRecord, rows.FieldsPerRecord, rows.LazyQuotes = comma, true, -1, comma == '\t'
	head, err := rows.Read()
	if err == io.EOF {
		return nil
	}
	if err != nil {
		return err
	}
	columns := make([]string, len(head))
	for i, name := range head {
		columns[i] = strings.ToLower(strings.TrimSpace(name))
	}
	column := func(names []string) int {
		for _, name := range names {
			if i := slices.Index(columns, name); i >= 0 {
				return i
			}
		}
		return -1
	}
	prompt, output := column(promptNames), column(outputNames)
	if prompt < 0 {
		for _, name := range columns[:min(len(columns), 8)] {
			d.seen = append(d.seen, fmt.Sprintf("%.40q", name))
		}
		return nil
	}
	for !d.full() {
		row, err := rows.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		tokens := 0.0
		if output >= 0 && output < len(row) && json.Unmarshal([]byte(row[output]), &tokens) != nil {
			tokens = 0
		}
		if prompt < len(row) {
			d.add(strings.Clone(row[prompt]), int(min(max(math.Round(tokens), 0), mostLength)))
		}
	}
	return nil
}

// add takes one prompt; one without a word is none.
func (d *dataset) add(text string, output int) {
	if text = strings.TrimSpace(text); text != "" && len(text) <= mostPrompt {
		d.samples = append(d.samples, Sample{text, output})
	}
}
