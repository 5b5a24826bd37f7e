package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/router"
)

// explainOptions say which decisions pacer explain shows.
type explainOptions struct {
	admin string // URL of an admin port
	last  int    // so many of the last decisions; 0 = ask about one

	model        string
	class        string   // "" = the route's
	minTPS       *float64 // nil = the route's; 0 = none
	promptTokens int      // 0 = unknown

	// dial replaces the network in tests; nil means TCP.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// mostLast is the bound of the API.
const mostLast = 1000

func newExplainCommand() *cobra.Command {
	var o explainOptions
	var minTPS float64
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain MODEL | explain --last N",
		Short: "Show why a request goes where it goes, or is refused",
		Long: `Ask a running gateway what would become of a request for MODEL now, without
sending it: every candidate with what runs there, the speed it would give, the
floors that must hold there, and the verdict. --last shows the decisions that
were made, the latest first.

n: sequences decoding; m: with a place there, which is what decides; tps: what one
stream gets with this request; low: its lower bound; protect: the highest floor
of those who run there; headroom: the bound over the floor it has to meet.`,
		Example: `  pacer explain chat
  pacer explain chat --min-tps 45 --prompt-tokens 8000
  pacer explain nightly --class batch --json
  pacer explain --last 20`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.model = args[0]
			}
			if cmd.Flags().Changed("min-tps") {
				o.minTPS = &minTPS
			}
			if err := o.check(len(args) > 0, cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			raw, decisions, err := o.ask(cmd.Context())
			if err != nil {
				return ignoreCanceled(err)
			}
			out := cmd.OutOrStdout()
			if asJSON {
				var indented bytes.Buffer
				if err := json.Indent(&indented, raw, "", " "); err != nil {
					return err
				}
				indented.WriteByte('\n')
				_, err := out.Write(harmlessJSON(indented.Bytes()))
				return err
			}
			return printDecisions(out, decisions, o.last > 0, widthOf(out))
		},
	}
	f := c.Flags()
	f.StringVar(&o.admin, "admin", defaultAdmin, "admin port of the gateway to ask")
	f.IntVar(&o.last, "last", 0, "show so many of the last decisions instead")
	f.StringVar(&o.class, "class", "", "interactive or batch, instead of the route's")
	f.Float64Var(&minTPS, "min-tps", 0, "floor in tokens/s instead of the route's; 0 is none")
	f.IntVar(&o.promptTokens, "prompt-tokens", 0, "length of the prompt")
	f.BoolVar(&asJSON, "json", false, "print JSON, as the admin port has it")
	f.Lookup("min-tps").DefValue = "the route's"
	return c
}

// check compares the flags.
func (o *explainOptions) check(model bool, given func(flag string) bool) error {
	switch {
	case given("last") && (model || given("class") || given("min-tps") || given("prompt-tokens")):
		return errors.New("--last shows what was decided; leave out the request")
	case given("last") && (o.last < 1 || o.last > mostLast):
		return fmt.Errorf("--last is %d; write a number from 1 to %d", o.last, mostLast)
	case given("last"):
		return nil
	case !model || o.model == "":
		return errors.New("name the model as a client does: pacer explain MODEL; or pacer explain --last N")
	case o.class != "" && o.class != router.Interactive.String() && o.class != router.Batch.String():
		return fmt.Errorf("--class is %.40q; write interactive or batch", o.class)
	case o.minTPS != nil && (!(*o.minTPS >= 0) || math.IsInf(*o.minTPS, 0)):
		return fmt.Errorf("--min-tps is %v; write tokens/s from 0, which is none", *o.minTPS)
	case o.promptTokens < 0:
		return fmt.Errorf("--prompt-tokens is %d; write a number from 0", o.promptTokens)
	}
	return nil
}

// ask returns the answer as it came, and the decisions in it.
func (o *explainOptions) ask(ctx context.Context) (json.RawMessage, []explained, error) {
	g, err := newAdminPort(o.admin, o.dial)
	if err != nil {
		return nil, nil, usageError{err}
	}
	g.ask = "fewer with --last"
	var raw json.RawMessage
	if o.last > 0 {
		var answer struct {
			Decisions []explained `json:"decisions"`
		}
		if err := g.get(ctx, "/api/v1/decisions", url.Values{"limit": {strconv.Itoa(o.last)}}, &raw); err != nil {
			return nil, nil, err
		}
		return raw, answer.Decisions, json.Unmarshal(raw, &answer)
	}
	question := struct {
		Model        string   `json:"model"`
		Class        string   `json:"class,omitempty"`
		MinTPS       *float64 `json:"min_tps,omitempty"`
		PromptTokens int      `json:"prompt_tokens,omitempty"`
	}{o.model, o.class, o.minTPS, o.promptTokens}
	if err := g.post(ctx, "/api/v1/explain", question, &raw); err != nil {
		return nil, nil, err
	}
	decisions := make([]explained, 1)
	return raw, decisions, json.Unmarshal(raw, &decisions[0])
}

// printDecisions draws one table for each decision. dated says whether they
// were made, at some time for some request, or only asked for.
func printDecisions(out io.Writer, decisions []explained, dated bool, width int) error {
	w := &failing{out: out}
	if len(decisions) == 0 {
		fmt.Fprintln(w, "no decision yet")
	}
	for i := range decisions {
		if i > 0 {
			fmt.Fprintln(w)
		}
		decisions[i].print(w, dated, width)
	}
	return w.err
}
