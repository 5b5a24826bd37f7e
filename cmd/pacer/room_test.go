package main

import (
	"strings"
	"testing"
	"testing/fstest"

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

func TestContainerMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"no control groups", fstest.MapFS{}, 0},
		{"a container", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, 1 << 30},
		{"no limit", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0},
		{"a unit in a slice with less", fstest.MapFS{
			"proc/self/cgroup": file("1:cpu:/x\n0::/system.slice/pacer.service\n"),
			"sys/fs/cgroup/system.slice/pacer.service/memory.max":  file("2147483648\n"),
			"sys/fs/cgroup/system.slice/memory.max":                file("1073741824\n"),
			"sys/fs/cgroup/system.slice/other.service/memory.max":  file("1\n"),
			"sys/fs/cgroup/system.slice/pacer.service/memory.high": file("1\n"),
		}, 1 << 30},
		{"old control groups", fstest.MapFS{"proc/self/cgroup": file("4:memory:/docker/1\n")}, 0},
	} {
		if got := containerMemory(c.root); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}
