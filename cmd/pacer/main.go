// Command pacer is the gateway and its tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/pacer-dev/pacer/internal/report"
)

func main() {
	ctx, stop := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		signal.Stop(signals) // a second one ends the program at once: from here on the default holds
		stop(toldToStop{first})
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// toldToStop is the cause of a context that a signal ended.
type toldToStop struct{ signal os.Signal }

func (e toldToStop) Error() string { return e.signal.String() + " received" }

// run executes one command line and returns the exit code: 0 after success or
// a signal, 1 on a runtime error, 2 on bad usage or configuration.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errReported) {
		fmt.Fprintf(report.NewWriter(stderr), "pacer: %v\n", err)
	}
	if usage := (report.UsageError{}); errors.As(err, &usage) {
		return 2
	}
	return 1
}
