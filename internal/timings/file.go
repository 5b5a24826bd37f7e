package timings

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// head is the first line of a file, which names the columns. Times are in units
// of ten microseconds; sent is since the first request, all others since what stands
// before them. An arrival is its gap, then *chunks unless it is 1, then +tokens
// where the engine counted.
const head = "part,sent,guess,prompt,tokens,firsttext,text,end,arrivals"

const columns = 9

// Write writes answers as a compressed file.
func Write(w io.Writer, answers []Answer) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(z)
	fmt.Fprintln(out, head)
	for i := range answers {
		a := &answers[i]
		fmt.Fprintf(out, "%s,%d,%d,%d,%d,%d,%d,%d,", a.Part, units(a.Sent), a.Guess, a.Prompt, a.Tokens, a.FirstText, a.Text, units(a.Ended)-units(a.Last()))
		last, total := units(a.Sent), 0
		for i, r := range a.Arrivals {
			if i > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(strconv.FormatInt(units(r.At)-last, 10))
			if r.Chunks != 1 {
				fmt.Fprintf(out, "*%d", r.Chunks)
			}
			if r.Total > 0 {
				fmt.Fprintf(out, "+%d", r.Total-total)
			}
			last, total = units(r.At), r.Total
		}
		out.WriteByte('\n')
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return z.Close()
}

// Read reads a file that Write wrote.
func Read(r io.Reader) ([]Answer, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != head {
		return nil, fmt.Errorf("timings: the first line is not %q", head)
	}
	var answers []Answer
	for lines.Scan() {
		a, err := parse(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("timings: answer %d: %w", len(answers)+1, err)
		}
		answers = append(answers, a)
	}
	return answers, lines.Err()
}

// parse reads one line.
func parse(line string) (a Answer, err error) {
	fields := strings.Split(line, ",")
	if len(fields) != columns {
		return a, fmt.Errorf("%d columns, want %d", len(fields), columns)
	}
	var numbers [columns - 2]int
	for i := range numbers {
		if numbers[i], err = strconv.Atoi(fields[i+1]); err != nil {
			return a, err
		}
	}
	a = Answer{
		Part: fields[0], Sent: ofUnits(numbers[0]), Guess: numbers[1], Prompt: numbers[2],
		Tokens: numbers[3], FirstText: numbers[4], Text: numbers[5],
	}
	at, total := a.Sent, 0
	for text := range strings.SplitSeq(fields[columns-1], " ") {
		r, counted, err := parseArrival(text)
		if err != nil {
			return a, err
		}
		r.At += at
		if counted {
			r.Total += total
			total = r.Total
		}
		at = r.At
		a.Arrivals = append(a.Arrivals, r)
	}
	a.Ended = at + ofUnits(numbers[6])
	return a, nil
}

// parseArrival reads one arrival, whose numbers are since the one before.
func parseArrival(text string) (r Arrival, counted bool, err error) {
	text, tokens, counted := strings.Cut(text, "+")
	text, chunks, several := strings.Cut(text, "*")
	gap, err := strconv.Atoi(text)
	if err != nil {
		return r, false, err
	}
	r.At, r.Chunks = ofUnits(gap), 1
	if several {
		if r.Chunks, err = strconv.Atoi(chunks); err != nil {
			return r, false, err
		}
	}
	if counted {
		r.Total, err = strconv.Atoi(tokens)
	}
	return r, counted, err
}

const unit = 10 * time.Microsecond

func units(d time.Duration) int64 { return int64(d / unit) }

func ofUnits(n int) time.Duration { return time.Duration(n) * unit }
