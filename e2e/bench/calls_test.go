package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// countsCalls reports whether this machine counts system calls: perf is installed, and
// the kernel shows it its trace points (mount -t tracefs tracefs /sys/kernel/tracing).
// Instructions it counts on few virtual machines, and under Valgrind no program in Go
// starts; system calls say the same, however busy the machine is.
func countsCalls() bool {
	_, err := os.Stat("/sys/kernel/tracing/events/raw_syscalls")
	_, missing := exec.LookPath("perf")
	return err == nil && missing == nil
}

// calls returns how many system calls the processes make for as long as length.
func calls(pids []int, length time.Duration) (int64, error) {
	all := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(pids)), ","), "[]")
	cmd := exec.Command("perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", all, "sleep", strconv.FormatFloat(length.Seconds(), 'f', -1, 64))
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("perf: %v: %s", err, said.Bytes())
	}
	for line := range strings.Lines(said.String()) {
		if count, rest, _ := strings.Cut(line, ","); strings.Contains(rest, "sys_enter") {
			return strconv.ParseInt(count, 10, 64)
		}
	}
	return 0, fmt.Errorf("perf said no number: %s", said.Bytes())
}
