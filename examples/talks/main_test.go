package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/bench"
	"github.com/pacer-dev/pacer/internal/must"
)

// Each turn begins with the one before it, and pacer bench reads what is written.
func TestALoadIsWritten(t *testing.T) {
	for _, load := range []string{"chats", "agents", "hot", "one-off"} {
		var text bytes.Buffer
		must.Do(t, write(&text, load, 4, 30*time.Second, 1))
		samples, err := bench.ReadDataset("talks.jsonl", bytes.NewReader(text.Bytes()))
		if err != nil || len(samples) < 30 || samples[0].Output == 0 {
			t.Errorf("%s: pacer bench reads %d prompts (%v), want about 120, with the lengths of their answers", load, len(samples), err)
		}
		before, gone, last := map[string]line{}, 0, 0.0
		for lines := json.NewDecoder(&text); lines.More(); {
			var l line
			must.Do(t, lines.Decode(&l))
			if l.At < last || l.Messages[len(l.Messages)-1].Role != "user" {
				t.Fatalf("%s: at %v s after %v s, the last message is of %q", load, l.At, last, l.Messages[len(l.Messages)-1].Role)
			}
			last = l.At
			if b, ok := before[l.Session]; ok {
				gone++
				for i, m := range b.Messages {
					if l.Messages[i] != m {
						t.Fatalf("%s: message %d of a turn differs from that of the turn before", load, i)
					}
				}
				if reply := l.Messages[len(b.Messages)]; reply.Role != "assistant" || len(reply.Content) != 4*b.Answer {
					t.Fatalf("%s: the answer is by %q and has %d bytes, want %d", load, reply.Role, len(reply.Content), 4*b.Answer)
				}
			}
			before[l.Session] = l
		}
		if multi := load != "one-off"; gone > 0 != multi {
			t.Errorf("%s: %d requests go on with a conversation", load, gone)
		}
	}
	if err := write(&bytes.Buffer{}, "nothing", 4, time.Minute, 1); err == nil || !strings.Contains(err.Error(), "-load chats") {
		t.Errorf("a load that there is not: %v", err)
	}
}
