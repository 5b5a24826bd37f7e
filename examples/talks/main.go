// Talks writes a load of conversations as one JSON object for each request: when it
// comes, whose conversation it goes on with, its messages, and how many tokens the
// answer has. README.md says what the loads are and how to play them.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pacer-dev/pacer/internal/arena"
)

// line is one request.
type line struct {
	At       float64 `json:"at_s"`
	Session  string  `json:"session"`
	Messages []said  `json:"messages"`
	Answer   int     `json:"output_tokens"`
}

type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func main() {
	load := flag.String("load", "chats", "chats, agents, hot or one-off")
	rate := flag.Float64("rate", 4, "requests per second")
	duration := flag.Duration("duration", time.Minute, "of the load")
	seed := flag.Uint64("seed", 1, "the same seed is the same load")
	flag.Parse()
	if err := write(os.Stdout, *load, *rate, *duration, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "talks:", err)
		os.Exit(2)
	}
}

func write(to io.Writer, load string, rate float64, duration time.Duration, seed uint64) error {
	t, ok := arena.NamedTalks(load, rate)
	if !ok || !(rate > 0) || duration <= 0 {
		return fmt.Errorf("no load %q at %v/s for %v; write -load chats -rate 4 -duration 1m", load, rate, duration)
	}
	t.Duration, t.Seed = duration, seed
	out := bufio.NewWriter(to)
	lines := json.NewEncoder(out)
	for a := range t.Arrivals() {
		l := line{At: a.At.Seconds(), Session: fmt.Sprintf("%016x", uint64(a.Turn.Session*(1<<53))), Answer: a.OutputTokens}
		for i, m := range a.Turn.Messages {
			l.Messages = append(l.Messages, said{t.Role(i), m.Text()})
		}
		if err := lines.Encode(l); err != nil {
			return err
		}
	}
	return out.Flush()
}
