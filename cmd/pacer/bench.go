package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/report"
)

// benchOptions say what pacer bench sends, and where.
type benchOptions struct {
	base     string // ends in the version
	key      string // "" = none
	model    string // "" = the first that the URL lists
	levels   []int
	duration time.Duration // of each level
	prompt   int           // tokens, estimated
	output   int           // tokens, at most

	client *http.Client
}

// benchAnswer is what was measured. As JSON it can be the prior of a backend.
type benchAnswer struct {
	URL          string       `json:"url"`
	Model        string       `json:"model"`
	PromptTokens int          `json:"prompt_tokens"`
	OutputTokens int          `json:"output_tokens"`
	DurationS    float64      `json:"duration_s"` // of each level
	Points       []benchPoint `json:"points"`
}

// benchPoint is one level: n users, each with one stream after the other.
type benchPoint struct {
	N            int     `json:"n"`
	TPS          float64 `json:"tps"` // of ONE stream, after its first token
	AggregateTPS float64 `json:"aggregate_tps"`
	TTFT         float64 `json:"ttft_s"` // mean
	TTFTP99      float64 `json:"ttft_p99_s"`
	StreamS      float64 `json:"stream_seconds"`
	Tokens       float64 `json:"tokens"`
	Streams      int     `json:"streams"` // that came to their end
	Shed         int     `json:"shed"`
	Failed       int     `json:"failed"`
}

func newBenchCommand() *cobra.Command {
	var o benchOptions
	var asJSON, asCSV bool
	var levels string
	c := &cobra.Command{
		Use:   "bench URL",
		Short: "Measure an OpenAI-compatible URL: tokens/s of one user by users at once",
		Long: `Stream chat completions from a URL, with so many users at once for each level, and
say how many tokens per second ONE of them got after its first token. A key is
read from OPENAI_API_KEY.

--json and --csv can be the prior of a backend: prior: { file: bench.json }. The
load is real: it takes the engine's time, or money.`,
		Example: `  pacer bench http://127.0.0.1:8000/v1
  pacer bench http://127.0.0.1:8000/v1 --n 1,8,32,128 --duration 30s --json > bench.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("bench: want one URL, got %d; write pacer bench http://127.0.0.1:8000/v1", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args[0], levels); err != nil {
				return report.Usage(err)
			}
			if asJSON && asCSV {
				return report.Usage(errors.New("--json and --csv are given; keep one"))
			}
			answer, err := o.run(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return ignoreCanceled(err)
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				return report.JSON(out, answer)
			case asCSV:
				return answer.csv(out)
			}
			return answer.print(out)
		},
	}
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "model to name (default: the first that URL/models lists)")
	f.StringVar(&levels, "n", "1,2,4,8,16,32", "users at once, level by level")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long each level lasts")
	f.IntVar(&o.prompt, "prompt", 256, "tokens of a prompt, about")
	f.IntVar(&o.output, "output", 256, "tokens of an answer, at most")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&asCSV, "csv", false, "print CSV")
	return c
}

// check reads the URL and the flags.
func (o *benchOptions) check(base, levels string) error {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("bench: %.200q is no base URL; write one such as http://127.0.0.1:8000/v1", base)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1"
	}
	o.base = strings.TrimRight(u.String(), "/")
	o.key = os.Getenv("OPENAI_API_KEY")
	if o.levels, err = readLevels(levels); err != nil {
		return err
	}
	slices.Sort(o.levels)
	o.levels = slices.Compact(o.levels)
	const most = 10_000
	switch {
	case o.levels[len(o.levels)-1] > most:
		return fmt.Errorf("--n: %d users at once are too many; write up to %d", o.levels[len(o.levels)-1], most)
	case o.duration < 100*time.Millisecond || o.duration > 24*time.Hour:
		return fmt.Errorf("--duration %v: want 100ms to 24h", o.duration)
	case o.prompt < 1 || o.prompt > 1<<20:
		return fmt.Errorf("--prompt %d: want 1 to %d tokens", o.prompt, 1<<20)
	case o.output < 2 || o.output > 1<<20:
		return fmt.Errorf("--output %d: want 2 to %d tokens", o.output, 1<<20)
	}
	return nil
}

// run measures level by level and tells of each on progress.
func (o *benchOptions) run(ctx context.Context, progress io.Writer) (*benchAnswer, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true
	transport.MaxIdleConnsPerHost = o.levels[len(o.levels)-1]
	transport.IdleConnTimeout = 4 * time.Second // engines close theirs after 5 s
	defer transport.CloseIdleConnections()
	o.client = &http.Client{Transport: transport}
	if o.model == "" {
		if err := o.findModel(ctx); err != nil {
			return nil, err
		}
	}
	show := report.Progress(progress)
	answer := &benchAnswer{URL: o.base, Model: o.model, PromptTokens: o.prompt, OutputTokens: o.output, DurationS: o.duration.Seconds()}
	for i, n := range o.levels {
		done := 20 * i / len(o.levels)
		show(fmt.Sprintf("[%s%s] n = %d for %v", strings.Repeat("#", done), strings.Repeat(".", 20-done), n, o.duration))
		p, err := o.level(ctx, n)
		show("")
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "n = %d: %.4g tokens/s each, first token after %.3g s, %d shed, %d failed\n", n, p.TPS, p.TTFT, p.Shed, p.Failed)
		answer.Points = append(answer.Points, p)
	}
	return answer, nil
}

// findModel takes the first model that the URL lists.
func (o *benchOptions) findModel(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, o.base+"/models", nil)
	if err != nil {
		return err
	}
	if o.key != "" {
		r.Header.Set("Authorization", "Bearer "+o.key)
	}
	resp, err := o.client.Do(r)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
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
		return fmt.Errorf("bench: %s/models answers %s; set OPENAI_API_KEY, or name the model with --model", o.base, report.Harmless(resp.Status))
	case err != nil || len(list.Data) == 0 || list.Data[0].ID == "":
		return fmt.Errorf("bench: %s/models lists no model; name one with --model", o.base)
	}
	o.model = list.Data[0].ID
	return nil
}

// level keeps n streams running until its time is over. What is under way then
// counts as far as it came.
func (o *benchOptions) level(ctx context.Context, n int) (benchPoint, error) {
	running, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	client := loadgen.Client{BaseURL: o.base, Key: o.key, HTTP: o.client}
	var mu sync.Mutex
	var results []loadgen.Result
	var users sync.WaitGroup
	for user := range n {
		users.Go(func() {
			salt := uint64(time.Now().UnixNano()) + uint64(user)<<56
			for running.Err() == nil {
				salt++
				r := client.Stream(running, loadgen.Request{Model: o.model, PromptTokens: o.prompt, MaxTokens: o.output, Salt: salt, Usage: true})
				mu.Lock()
				results = append(results, r)
				mu.Unlock()
				if r.Outcome == loadgen.Shed || r.Outcome == loadgen.Failed {
					rest(running, max(r.RetryAfter, 100*time.Millisecond))
				}
			}
		})
	}
	users.Wait()
	if err := ctx.Err(); err != nil {
		return benchPoint{}, err
	}
	return benchPointOf(n, results)
}

// rest waits, but not beyond ctx.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// benchPointOf sums up what the users of one level saw. TPS is tokens over
// stream-seconds: each second of a stream weighs the same, however many there
// were. An event counts for as many tokens as the engine says it had.
func benchPointOf(n int, results []loadgen.Result) (benchPoint, error) {
	p := benchPoint{N: n}
	var told, toldEvents, events float64
	var firsts []float64
	var failure error
	for _, r := range results {
		switch r.Outcome {
		case loadgen.Shed:
			p.Shed++
		case loadgen.Failed:
			p.Failed++
			failure = errors.New(report.Harmless(r.Err.Error()))
		case loadgen.Done:
			p.Streams++
			if r.Counted > 0 && r.Tokens > 0 {
				told += float64(r.Counted)
				toldEvents += float64(r.Tokens)
			}
		}
		if r.TTFT > 0 {
			firsts = append(firsts, r.TTFT.Seconds())
			p.TTFT += r.TTFT.Seconds()
		}
		events += float64(max(r.Tokens-r.First, 0))
		p.StreamS += r.Decode.Seconds()
	}
	p.Tokens = events
	if toldEvents > 0 {
		p.Tokens *= told / toldEvents
	}
	p.TPS = p.Tokens / p.StreamS
	switch {
	case p.Tokens > 0 && p.StreamS > 0:
	case failure != nil:
		return p, fmt.Errorf("bench: n = %d: no stream came: %w", n, failure)
	case p.Shed > 0:
		return p, fmt.Errorf("bench: n = %d: every request was refused with 429", n)
	default:
		return p, fmt.Errorf("bench: n = %d: no stream had two tokens; raise --duration or --output", n)
	}
	slices.Sort(firsts)
	p.TTFT /= float64(len(firsts))
	p.TTFTP99 = firsts[int(math.Ceil(0.99*float64(len(firsts))))-1]
	p.AggregateTPS = float64(n) * p.TPS
	return p, nil
}

// print writes the table.
func (a *benchAnswer) print(out io.Writer) error {
	w := report.NewWriter(out)
	fmt.Fprintf(w, "%s · %s: prompts of about %d tokens, answers of up to %d, %v s a level\n\n", a.URL, report.Harmless(a.Model), a.PromptTokens, a.OutputTokens, a.DurationS)
	fmt.Fprintf(w, "%6s %14s %14s %12s %12s %9s %9s %6s %6s\n", "n", "TOKENS/S EACH", "TOKENS/S ALL", "TTFT MEAN", "TTFT P99", "TOKENS", "STREAMS", "SHED", "FAILED")
	for _, p := range a.Points {
		fmt.Fprintf(w, "%6d %14.4g %14.5g %10.3g s %10.3g s %9.0f %9d %6d %6d\n",
			p.N, p.TPS, p.AggregateTPS, p.TTFT, p.TTFTP99, p.Tokens, p.Streams, p.Shed, p.Failed)
	}
	return w.Err()
}

// csv writes what a prior reads.
func (a *benchAnswer) csv(out io.Writer) error {
	w := report.NewWriter(out)
	fmt.Fprintln(w, "n,tps,ttft_s")
	for _, p := range a.Points {
		fmt.Fprintf(w, "%d,%s,%s\n", p.N, strconv.FormatFloat(p.TPS, 'g', 6, 64), strconv.FormatFloat(p.TTFT, 'g', 6, 64))
	}
	return w.Err()
}
