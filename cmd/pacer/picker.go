package main

import (
	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/config"
)

func newPickerCommand() *cobra.Command {
	f := serveFlags{}
	c := &cobra.Command{
		Use:   "picker",
		Short: "Choose backends for an Envoy, which carries the requests itself",
		Long: `Run the endpoint picker of an Envoy or of an Inference Gateway, with the given
configuration: an external processor (ext_proc, gRPC) that tells Envoy for each
request to which backend it goes, and learns from the answers that stream by. No
data port is opened. What is said at the door is the same as with serve: keys,
limits, floors, refusals. See docs/ENVOY.md.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, true, func(cfg *config.Config) *string { return &cfg.Picker.Listen })
		},
	}
	f.add(c, "address that Envoy asks at, instead of the configured one")
	return c
}
