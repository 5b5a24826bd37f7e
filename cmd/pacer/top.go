package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/ask"
	"github.com/pacer-dev/pacer/internal/report"
)

func newTopCommand() *cobra.Command {
	var q ask.Top
	var every time.Duration
	var once, asJSON bool
	c := &cobra.Command{
		Use:   "top",
		Short: "Show each route of a running gateway: its floor, what is kept, who waits, what is wrong",
		Long: `Show each route of a running gateway, as the first table of its page does, again
and again until Ctrl-C, as far as the terminal is high enough. Where there is no terminal, or with --once or --json, once.
Where the admin port asks for a token, it is read from PACER_ADMIN_TOKEN.`,
		Example: `  pacer top
  pacer top --once --window 1h`,
		Args: noArgument,
		RunE: func(cmd *cobra.Command, _ []string) error {
			windows := []string{"5m", "1h", "6h", "start"}
			if !slices.Contains(windows, q.Window) {
				return report.Usage(fmt.Errorf("--window %.20q: write one of %v", q.Window, windows))
			}
			if every < 200*time.Millisecond {
				return report.Usage(fmt.Errorf("--every %v: want 200ms or more", every))
			}
			q.Token = os.Getenv("PACER_ADMIN_TOKEN")
			out := cmd.OutOrStdout()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for drawn := 0; ; {
				routes, err := q.Ask(cmd.Context())
				if err != nil {
					return ignoreCanceled(err)
				}
				if asJSON {
					return report.JSON(out, routes)
				}
				terminal := report.Terminal(out) != nil
				var table strings.Builder
				if err := ask.PrintTop(&table, routes, report.Width(out), terminal); err != nil {
					return err
				}
				text := table.String()
				if terminal && !once {
					text = report.Cropped(text, report.Height(out)-1) // the cursor stands below
				}
				if drawn > 0 {
					text = fmt.Sprintf("\x1b[%dA\x1b[J", drawn) + text // back over the last table
				}
				if _, err := io.WriteString(out, text); err != nil || once || !terminal {
					return err
				}
				drawn = strings.Count(text, "\n")
				select {
				case <-cmd.Context().Done():
					return nil
				case <-tick.C:
				}
			}
		},
	}
	f := c.Flags()
	f.StringVar(&q.Admin, "admin", ask.DefaultAdmin, "admin port of the gateway to ask")
	f.StringVar(&q.Window, "window", "5m", "how far back figures reach: 5m, 1h, 6h or start")
	f.DurationVar(&every, "every", time.Second, "time between two looks")
	f.BoolVar(&once, "once", false, "show it once")
	f.BoolVar(&asJSON, "json", false, "print JSON, once")
	return c
}
