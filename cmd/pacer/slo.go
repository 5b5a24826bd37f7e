package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/slofile"
)

func newSLOCommand() *cobra.Command {
	return family("slo", "The promises of the routes, for other tools", newSLOExportCommand())
}

// windows are what both formats take.
var windows = regexp.MustCompile(`^[1-9][0-9]*[dhw]$`)

func newSLOExportCommand() *cobra.Command {
	var file, format, window string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write the routes' objectives as OpenSLO or Sloth YAML",
		Long: `Write one objective for each route that has a min_tps or a max_ttft: the share of
its requests that were kept, by pacer_slo_total, and slo.attainment as its goal.
Shed requests count as lost. A route with an attainment and neither of the two gets
none: pacer check warns of it.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !windows.MatchString(window) {
				return report.Usage(fmt.Errorf("slo export: --window %q is no time; write one such as 28d or 4w", window))
			}
			cfg, err := loadConfig(configFile(file))
			if err != nil {
				return report.Usage(err)
			}
			text, err := slofile.Write(cfg, format, window)
			if err != nil {
				return report.Usage(err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	c.Flags().StringVarP(&file, "config", "c", "", configUsage)
	c.Flags().StringVar(&format, "format", slofile.Formats[0], strings.Join(slofile.Formats, " or "))
	c.Flags().StringVar(&window, "window", "28d", "how long a budget lasts; Sloth takes it as a flag of its own")
	return c
}
