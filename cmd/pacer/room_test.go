package main

import (
	"bytes"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/config"
)

func TestLimitsThatTheMachineDoesNotKeep(t *testing.T) {
	for _, c := range []struct {
		name   string
		room   room
		limits config.Limits
		want   []string // each a part of its line
	}{
		{"nothing known", room{}, config.Limits{Streams: 1e6, Buffered: 1 << 40}, nil},
		{"just enough", room{descriptors: 2*1000 + 512, memory: 2 << 30}, config.Limits{Streams: 1000, Buffered: 1 << 30}, nil},
		{
			"one file too few",
			room{descriptors: 2*1000 + 511},
			config.Limits{Streams: 1000},
			[]string{"takes 2512 open files, and this process may have 2511: beyond about 999 streams"},
		},
		{"hardly any", room{descriptors: 64}, config.Limits{Streams: 20000}, []string{"limits: { streams: 1 }"}},
		{"memory", room{memory: 1 << 30}, config.Limits{Streams: 1, Buffered: 1<<29 + 1}, []string{"write limits: { buffered: 512MiB }"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.room.problems(c.limits)
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %d problems", got, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("got %q, want %q in it", got[i], want)
				}
			}
		})
	}
}

// That the default is more than a laptop has is a remark; few files are a warning.
func TestHowLoudALackOfFilesIs(t *testing.T) {
	for _, c := range []struct {
		room room
		want string
	}{
		{room{descriptors: 1024}, "WARN"},
		{room{descriptors: 4095}, "WARN"},
		{room{descriptors: 4096}, "INFO"},
		{room{descriptors: 40512}, ""},
		{room{memory: 1 << 30}, "WARN"},
	} {
		var out bytes.Buffer
		c.room.say(slog.New(slog.NewTextHandler(&out, nil)), config.Limits{Streams: 20000, Buffered: 1 << 30})
		level := ""
		if _, rest, ok := strings.Cut(out.String(), "level="); ok {
			level, _, _ = strings.Cut(rest, " ")
		}
		if level != c.want || strings.Count(out.String(), "\n") > 1 {
			t.Errorf("%+v: the level is %q, want %q:\n%s", c.room, level, c.want, &out)
		}
	}
}

// Bodies and the heap share what a container has.
func TestWhatBodiesLeaveToTheHeap(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct{ container, buffered, want int64 }{
		{10 * gib, 1 * gib, 8 * gib},
		{10 * gib, 8 * gib, 9 * gib / 2}, // sayRoom warns of it
	} {
		if got := heapLimit(c.container, c.buffered); got != c.want {
			t.Errorf("%d bytes, %d for bodies: %d for the heap, want %d", c.container, c.buffered, got, c.want)
		}
	}
}

// In a container the limit is found that the kernel holds it to.
func TestContainerMemory(t *testing.T) {
	text, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	least, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil {
		t.Skipf("this machine sets no limit where a container would see it: %q, %v", text, err)
	}
	if got := containerMemory(); got <= 0 || got > least {
		t.Errorf("%d bytes, want at most the %d of the root", got, least)
	}
}
