package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// oneArgument wants the one argument that the command's Use names.
func oneArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	_, what, _ := strings.Cut(cmd.Use, " ")
	return fmt.Errorf("%s: want one %s, got %d; write %s %s", cmd.Name(), what, len(args), cmd.CommandPath(), what)
}

// atMostOneArgument wants no more than one.
func atMostOneArgument(cmd *cobra.Command, args []string) error {
	if len(args) <= 1 {
		return nil
	}
	return fmt.Errorf("%s: want one argument at most, got %d; leave out %.40q", cmd.Name(), len(args), args[1])
}

// noArgument refuses any.
func noArgument(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no argument %.40q; leave it out, or see %s --help", cmd.Name(), args[0], cmd.CommandPath())
}
