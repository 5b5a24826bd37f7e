package main

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/pacer-dev/pacer/config"
)

const (
	// perStream is how many descriptors a request under way takes: its client's
	// connection and its backend's.
	perStream = 2

	// spareDescriptors is for what is no stream: ports, files, Redis, the admin
	// port's clients, and connections that are kept for the next request.
	spareDescriptors = 512

	// fewDescriptors are too few for a gateway that many use. From there on the default
	// of limits.streams is more than the machine lets in, and rarely more than come.
	fewDescriptors = 4096

	// memoryShare is the part of a container's memory that bodies and the heap
	// together may take before the collector works harder. The rest is for what is
	// neither.
	memoryShare = 0.9
)

// room is what the machine lets this process have; 0 = without limit, or not
// known.
type room struct {
	descriptors uint64 // at once
	memory      int64  // bytes
}

// takeRoom finds out how much room there is. Go has raised the soft limit of
// descriptors to the hard one already. A container's memory limit, less the
// bodies that lie outside of the heap, becomes the one of the garbage collector,
// unless GOMEMLIMIT said something else: else the heap may grow into it, and
// the kernel ends the program.
func takeRoom(log *slog.Logger, buffered int64) room {
	r := room{descriptors: mayOpen()}
	if set := debug.SetMemoryLimit(-1); set != math.MaxInt64 {
		r.memory = set
		paceCollector(log, set)
		return r
	}
	limit := int64(0)
	if r.memory = containerMemory(); r.memory > 0 {
		limit = heapLimit(r.memory, buffered)
		debug.SetMemoryLimit(limit)
		log.Info("memory limit taken from the container", "container_bytes", r.memory, "gomemlimit_bytes", limit)
	}
	paceCollector(log, limit)
	return r
}

// heapLimit is what of a container's memory the heap may take: what buffered
// bodies leave, and at least as much as they.
func heapLimit(container, buffered int64) int64 {
	all := int64(memoryShare * float64(container))
	return max(all-buffered, all/2)
}

// sayRoom says which limits of the configuration the machine does not keep.
func (p *program) sayRoom(cfg *config.Config) {
	p.room.say(p.log, cfg.Limits)
}

// say warns of limits that are more than there is room for. Of open files that are
// not few it is a remark: a laptop has fewer than the default wants, and as many as
// it needs.
func (r room) say(log *slog.Logger, l config.Limits) {
	if problem := r.tooFewFiles(l); problem != "" {
		level := slog.LevelInfo
		if r.descriptors < fewDescriptors {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, problem)
	}
	if problem := r.tooLittleMemory(l); problem != "" {
		log.Warn(problem)
	}
}

// problems says which limits are more than there is room for, and what to write
// instead.
func (r room) problems(l config.Limits) (out []string) {
	for _, problem := range []string{r.tooFewFiles(l), r.tooLittleMemory(l)} {
		if problem != "" {
			out = append(out, problem)
		}
	}
	return out
}

func (r room) tooFewFiles(l config.Limits) string {
	need := uint64(perStream*l.Streams + spareDescriptors)
	if r.descriptors == 0 || r.descriptors >= need {
		return ""
	}
	fit := max(int64(r.descriptors)-spareDescriptors, perStream) / perStream
	return fmt.Sprintf("limits.streams is %d, which takes %d open files, and this process may have %d: beyond about %d streams connections fail; "+
		"if more may come, write LimitNOFILE=%d in the unit (docker: --ulimit nofile=%d; a shell: ulimit -n %d), or limits: { streams: %d }",
		l.Streams, need, r.descriptors, fit, need, need, need, fit)
}

func (r room) tooLittleMemory(l config.Limits) string {
	if r.memory == 0 || l.Buffered <= r.memory/2 {
		return ""
	}
	return fmt.Sprintf("limits.buffered is %d bytes, more than half of the %d that this process may have; write limits: { buffered: %dMiB }, or give it more memory",
		l.Buffered, r.memory, max(r.memory/2>>20, 1))
}

// connections is how many connections clients may have at once: as many as leave
// each of them one to a backend. 0 = any number.
func (r room) connections() int {
	if r.descriptors == 0 {
		return 0
	}
	return int(max(int64(min(r.descriptors, math.MaxInt32))-spareDescriptors, 2*perStream) / perStream)
}

// containerMemory returns the lowest memory limit of the control groups that this
// process is in, of either version, in bytes; 0 = none, or it cannot be read.
func containerMemory() int64 {
	limit, err := memlimit.FromCgroup()
	if err != nil || limit > math.MaxInt64 {
		return 0
	}
	return int64(limit)
}
