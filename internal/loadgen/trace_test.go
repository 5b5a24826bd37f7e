package loadgen

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

func TestReadTrace(t *testing.T) {
	want := []Arrival{
		{At: 500 * time.Millisecond, PromptTokens: 10, OutputTokens: 20},
		{At: 1500 * time.Millisecond, PromptTokens: 11, OutputTokens: 21},
	}
	for _, text := range []string{
		"prompt_tokens,arrival_s,output_tokens\n10,0.5,20\n11,1.5,21\n12,99,22\n",
		"\ufeffArrival_S,x,\"prompt_tokens\",output_tokens\r\n0.5,a, 10,20\r\n\r\n1.5,b,\"11\",21\r\n10.5,c,1,1\r\n",
	} {
		if got, err := ReadTrace("t.csv", strings.NewReader(text), 10*time.Second); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v; want the arrivals of the first 10 s, %v", text, got, err, want)
		}
	}
}

// As Azure publishes them: dates, of which the first is zero.
func TestReadTraceWithDates(t *testing.T) {
	for _, text := range []string{
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 23:59:59.9000000,374,44\n2023-11-17 00:00:04.1500000,396,109\n",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,374,44\n2024-05-10 00:00:04.259930+00:00,396,109\n",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10T00:00:00Z,374,44\n2024-05-10T00:00:04.25Z,396,109\n",
	} {
		got, err := ReadTrace("t.csv", strings.NewReader(text), 0)
		want := []Arrival{{0, 374, 44}, {4250 * time.Millisecond, 396, 109}}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestReadTraceSaysWhereItIsWrong(t *testing.T) {
	const head = "arrival_s,prompt_tokens,output_tokens\n"
	const dates = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	for bad, want := range map[string]string{
		"":                                 "t.csv:1: the file is empty",
		"\n\n":                             "t.csv:1: the file is empty",
		"a,b\n1,2\n":                       "t.csv:1: the header has no column arrival_s",
		"arrival_s,prompt_tokens\n":        "t.csv:1: the header has no column output_tokens",
		"TIMESTAMP,GeneratedTokens\n":      "t.csv:1: the header has no column contexttokens",
		head + "1,2,x\n":                   `t.csv:2: "x" output tokens`,
		head + "1,-2,3\n":                  `t.csv:2: "-2" prompt tokens`,
		head + "1,2,3\n\n0.5,2,3\n":        "t.csv:4: arrivals go back in time, by 500ms",
		head + "NaN,2,3\n":                 `t.csv:2: the arrival "NaN"`,
		head + "1e300,2,3\n":               `t.csv:2: the arrival "1e300"`,
		head + "-1,2,3\n":                  `t.csv:2: the arrival "-1"`,
		head + "1,2,0\n":                   `t.csv:2: "0" output tokens`,
		head + "1,2\n":                     "t.csv:2: 2 columns, and the header has 3",
		head + "1,2,99999999999\n":         "t.csv:2:",
		head + strings.Repeat("1", 70<<10): "t.csv:2: the line is longer",
		dates + "today,1,1\n":              `t.csv:2: "today" is no time`,
		dates + "2024-05-10 00:00:00,1,1\n2024-05-09 00:00:00,1,1\n": "t.csv:3: arrivals go back in time",
	} {
		_, err := ReadTrace("t.csv", strings.NewReader(bad), 0)
		var problem *TraceError
		if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: got error %v, want one that begins %s", bad, err, want)
		}
	}
}

// endless is a trace that no memory holds.
type endless struct{ begun bool }

func (e *endless) Read(p []byte) (int, error) {
	if !e.begun {
		e.begun = true
		return copy(p, "arrival_s,prompt_tokens,output_tokens\n"), nil
	}
	const line = "7.5,100,200\n"
	n := 0
	for len(p)-n >= len(line) {
		n += copy(p[n:], line)
	}
	return n, nil
}

func TestATraceIsReadOneByOne(t *testing.T) {
	trace, err := NewTrace("t.csv", &endless{})
	must.Do(t, err)
	allocated := testing.AllocsPerRun(10_000, func() {
		if _, err = trace.Next(); err != nil {
			t.Fatal(err)
		}
	})
	if allocated > 2 {
		t.Errorf("%.0f allocations a request, want at most 2", allocated)
	}
	if _, err := ReadTrace("t.csv", &endless{}, 0); err == nil || !strings.Contains(err.Error(), "more than 1000000") {
		t.Errorf("ReadTrace of an endless trace: %v, want a refusal", err)
	}
	if _, err := NewTrace("t.csv", failingReader{}); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "t.csv: ") {
		t.Errorf("got %v, want the error of the reader with the name of the file", err)
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
