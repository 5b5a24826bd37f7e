package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/arena"
	"github.com/pacer-dev/pacer/internal/bench"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/report"
)

// benchOptions are the flags of pacer bench.
type benchOptions struct {
	bench.Options
	levels, rates, trace    string
	prompt, output, dataset string
	warmup                  string
	speed                   float64
	compare                 bool
	as                      form
	html                    string
}

func newBenchCommand() *cobra.Command {
	var o benchOptions
	c := &cobra.Command{
		Use:   "bench URL | bench --compare A.json B.json",
		Short: "Measure an OpenAI-compatible URL: tokens/s of one user by users at once",
		Long: `Stream chat completions from a URL, level by level: with so many users at once
(--n), so many requests per second whatever becomes of them (--rate), or as a
trace has them (--trace). It says how many tokens per second ONE user got after
the first token, and how TTFT, TPOT and E2E are spread. A key is read from
OPENAI_API_KEY. A level that gives nothing is reported and ends nothing.

Lengths are tokens, such as 256, lognormal:256:0.8 or bimodal:200:4000:0.2. A
dataset is a file of prompts: ShareGPT's list, JSON objects one after the other
(prompt, text, messages, …), CSV with a header, or a text on each line. Where it
has output_tokens, answers are as long, unless --output is given.

--json and --csv can be the prior of a backend: prior: { file: bench.json }. The
load is real: it takes the engine's time, or money.`,
		Example: `  pacer bench http://127.0.0.1:8000/v1
  pacer bench http://127.0.0.1:8000/v1 --n 1,8,32,128 --duration 30s --json > bench.json
  pacer bench http://127.0.0.1:8000/v1 --rate 2,4,8 --slo-ttft 2s --slo-tps 30 --html report.html
  pacer bench --compare before.json after.json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.compare && len(args) != 2:
				return fmt.Errorf("bench --compare: want two files, got %d; write pacer bench --compare before.json after.json", len(args))
			case !o.compare && len(args) != 1:
				return fmt.Errorf("bench: want one URL, got %d; write pacer bench http://127.0.0.1:8000/v1", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.as.check(); err != nil {
				return err
			}
			if o.compare {
				return o.runCompare(cmd.OutOrStdout(), args)
			}
			if err := o.check(args[0], cmd.Flags().Changed); err != nil {
				return report.Usage(err)
			}
			answer, err := o.run(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return ignoreCanceled(err)
			}
			return o.write(cmd.OutOrStdout(), answer)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Model, "model", "", "model to name (default: the first that URL/models lists)")
	f.StringVar(&o.levels, "n", "1,2,4,8,10,16,25,32,50,64", "users at once, level by level")
	f.StringVar(&o.rates, "rate", "", "requests per second instead, level by level, at random times")
	f.StringVar(&o.trace, "trace", "", "send as this trace has it instead: CSV of arrival_s,prompt_tokens,output_tokens")
	f.Float64Var(&o.speed, "trace-speed", 1, "play the trace so many times as fast")
	f.DurationVar(&o.Duration, "duration", 10*time.Second, "how long each level lasts, after its warm-up")
	f.StringVar(&o.warmup, "warmup", "", "how long each level is loaded before it counts (default: a tenth of --duration)")
	f.IntVar(&o.Requests, "requests", 0, "send so many requests a level, all to their end (default: as many as come in --duration)")
	f.IntVar(&o.Repeats, "repeats", 1, "measure each level so many times, and say the confidence")
	f.StringVar(&o.prompt, "prompt", "256", "tokens of a prompt, about")
	f.StringVar(&o.output, "output", "256", "tokens of an answer, at most")
	f.StringVar(&o.dataset, "dataset", "", "file of prompts: a text or an object on each line, a list in JSON (ShareGPT), or CSV with a header")
	f.DurationVar(&o.SLO.TTFT, "slo-ttft", 0, "a request is good when its first token came within this")
	f.Float64Var(&o.SLO.TPS, "slo-tps", 0, "… and its tokens at this speed or faster")
	f.DurationVar(&o.SLO.E2E, "slo-e2e", 0, "… and its last token within this")
	f.Float64Var(&o.Floor, "floor", 0, "say how many users still get so many tokens/s each")
	f.Uint64Var(&o.Seed, "seed", 1, "of lengths and arrivals")
	f.BoolVar(&o.compare, "compare", false, "compare two results of --json")
	f.BoolVar(&o.as.json, "json", false, "print JSON")
	f.BoolVar(&o.as.csv, "csv", false, "print CSV")
	f.StringVar(&o.html, "html", "", "write a page with plots to this file as well")
	return c
}

// check reads the URL and the flags.
func (o *benchOptions) check(base string, given func(string) bool) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("bench: %.200q is no base URL; write one such as http://127.0.0.1:8000/v1", base)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	o.Base = strings.TrimRight(u.String(), "/")
	o.Key, o.OutputGiven = os.Getenv("OPENAI_API_KEY"), given("output")
	o.Warmup = o.Duration / 10
	if o.warmup != "" {
		if o.Warmup, err = time.ParseDuration(o.warmup); err != nil {
			return fmt.Errorf("--warmup %.40q is no duration; write one such as 2s", o.warmup)
		}
	}
	for _, l := range []struct {
		flag, text string
		into       *arena.Lengths
	}{{"--prompt", o.prompt, &o.Prompt}, {"--output", o.output, &o.Output}} {
		text := l.text
		if _, err := strconv.Atoi(text); err == nil {
			text = "fixed:" + text
		}
		if *l.into, err = arena.ParseLengths(text); err != nil {
			return fmt.Errorf("%s: %w", l.flag, err)
		}
	}
	if o.rates == "" && o.trace == "" || given("n") {
		if o.Users, err = readLevels(o.levels); err != nil {
			return err
		}
		slices.Sort(o.Users)
		o.Users = slices.Compact(o.Users)
	}
	if o.Requests > 0 && (given("duration") || given("warmup")) {
		return errors.New("--requests and --duration or --warmup are ways to say how long a level is; keep one")
	}
	if err := o.readRates(); err != nil {
		return err
	}
	if err := o.readTrace(); err != nil {
		return err
	}
	if err := o.readDataset(); err != nil {
		return err
	}
	return o.Check()
}

func (o *benchOptions) readRates() error {
	for word := range strings.SplitSeq(o.rates, ",") {
		if o.rates == "" {
			return nil
		}
		r, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil {
			return fmt.Errorf("--rate: %.40q is no number; write requests per second, such as 2,4,8", word)
		}
		o.Rates = append(o.Rates, r)
	}
	return nil
}

func (o *benchOptions) readTrace() error {
	if o.trace == "" {
		return nil
	}
	if !(o.speed > 0 && o.speed <= 1e6) {
		return errors.New("--trace-speed: want a number above 0")
	}
	f, err := os.Open(o.trace)
	if err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	defer f.Close()
	arrivals, err := loadgen.ReadTrace(o.trace, f, 24*time.Hour)
	if err != nil {
		return err
	}
	for i := range arrivals {
		arrivals[i].At = time.Duration(float64(arrivals[i].At) / o.speed)
	}
	o.Trace = arrivals
	return nil
}

func (o *benchOptions) readDataset() error {
	if o.dataset == "" {
		return nil
	}
	f, err := os.Open(o.dataset)
	if err != nil {
		return fmt.Errorf("--dataset: %w", err)
	}
	defer f.Close()
	if o.Dataset, err = bench.ReadDataset(o.dataset, f); err != nil {
		return fmt.Errorf("--dataset %s: %w", o.dataset, err)
	}
	// In another order than the file, so that neighbours that are alike do not meet.
	rng := rand.New(rand.NewPCG(o.Seed, 2))
	rng.Shuffle(len(o.Dataset), func(i, j int) { o.Dataset[i], o.Dataset[j] = o.Dataset[j], o.Dataset[i] })
	return nil
}

// run measures, and tells of each level on progress.
func (o *benchOptions) run(ctx context.Context, progress io.Writer) (*bench.Answer, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true
	transport.MaxIdleConnsPerHost = bench.MostUsers
	transport.MaxIdleConns = 0
	transport.IdleConnTimeout = 4 * time.Second // engines close theirs after 5 s
	defer transport.CloseIdleConnections()
	o.HTTP = &http.Client{Transport: transport}
	if o.Model == "" {
		if err := o.findModel(ctx); err != nil {
			return nil, err
		}
	}
	show := report.Progress(progress)
	o.Progress = func(what string, share float64, left time.Duration) {
		done := int(20 * share)
		show(fmt.Sprintf("[%s%s] %s, %v left", strings.Repeat("#", done), strings.Repeat(".", 20-done), what, left.Round(time.Second)))
	}
	o.Done = func(p *bench.Point) {
		show("")
		what := fmt.Sprintf("n = %d", p.N)
		if p.Rate > 0 {
			what = fmt.Sprintf("%.3g requests/s, n = %d", p.Rate, p.N)
		}
		fmt.Fprintf(progress, "%s: %.4g tokens/s each, first token after %.3g s, %d shed, %d failed\n", what, p.TPS, p.TTFT, p.Shed, p.Failed)
	}
	return o.Run(ctx)
}

// findModel takes the first model that the URL lists.
func (o *benchOptions) findModel(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.Base+"/models", nil)
	if err != nil {
		return err
	}
	if o.Key != "" {
		r.Header.Set("Authorization", "Bearer "+o.Key)
	}
	resp, err := o.HTTP.Do(r)
	if err != nil {
		return fmt.Errorf("bench: %w; see whether a server runs there, or name another base URL", err)
	}
	defer resp.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 4<<20)).Decode(&list)
	switch {
	case resp.StatusCode != http.StatusOK:
		advice := "name the model with --model"
		switch resp.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			advice = "set OPENAI_API_KEY, or " + advice
		case http.StatusNotFound:
			advice = "write the base URL, which ends in /v1 at most servers, or " + advice
		}
		return fmt.Errorf("bench: %s/models answers %s; %s", o.Base, report.Harmless(resp.Status), advice)
	case err != nil || len(list.Data) == 0 || list.Data[0].ID == "":
		return fmt.Errorf("bench: %s/models lists no model; name one with --model", o.Base)
	}
	o.Model = list.Data[0].ID
	return nil
}

// write prints the answer, and writes its page.
func (o *benchOptions) write(out io.Writer, answer *bench.Answer) error {
	if o.html != "" {
		var b bytes.Buffer
		if err := answer.HTML(&b); err != nil {
			return err
		}
		if err := os.WriteFile(o.html, b.Bytes(), 0o644); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	switch {
	case o.as.json:
		return report.JSON(out, answer)
	case o.as.csv:
		return answer.CSV(out)
	}
	return answer.Print(out)
}

// runCompare puts two results side by side.
func (o *benchOptions) runCompare(out io.Writer, files []string) error {
	answers, err := readAnswers("bench --compare", files)
	if err != nil {
		return err
	}
	changes := bench.Compare(answers[0], answers[1])
	if len(changes) == 0 {
		return errors.New("bench --compare: the two have no level in common")
	}
	if o.as.json {
		return report.JSON(out, changes)
	}
	return bench.PrintChanges(out, answers[0], answers[1], changes)
}

// readAnswers reads results of pacer bench --json; what names whose they are in errors.
func readAnswers(what string, files []string) (answers []*bench.Answer, err error) {
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, report.Usage(fmt.Errorf("%s: %w", what, err))
		}
		a, err := bench.Read(name, data)
		if err != nil {
			return nil, report.Usage(fmt.Errorf("%s: %w", what, err))
		}
		answers = append(answers, a)
	}
	return answers, nil
}
