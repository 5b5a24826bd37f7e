package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/fleet/kubernetes"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/internal/tracing"
)

func newServeCommand() *cobra.Command {
	f := serveFlags{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Run the gateway with the given configuration. Without -c, pacer.yaml in this
folder is read; where there is none, OPENAI_BASE_URL (and OPENAI_API_KEY) give
one backend and a route for every model.`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, false, func(cfg *config.Config) *string { return &cfg.Listen })
		},
	}
	f.add(c, "address of the data port, instead of the configured one")
	return c
}

// serveFlags are those of the commands that serve requests.
type serveFlags struct{ file, listen, admin string }

func (f *serveFlags) add(c *cobra.Command, listen string) {
	c.Flags().StringVarP(&f.file, "config", "c", "", configUsage)
	c.Flags().StringVar(&f.listen, "listen", "", listen)
	c.Flags().StringVar(&f.admin, "admin", "", "address of the admin port, instead of the configured one")
}

// run serves until the command's context ends; at is where a configuration has the
// address that --listen replaces.
func (f *serveFlags) run(cmd *cobra.Command, picker bool, at func(*config.Config) *string) error {
	file := configFile(f.file)
	load := func() (*config.Config, error) {
		cfg, err := loadConfig(file)
		if err != nil {
			return nil, err
		}
		if f.listen != "" {
			*at(cfg) = f.listen
		}
		if f.admin != "" {
			cfg.Admin.Listen = f.admin
		}
		return cfg, nil
	}
	cfg, err := load()
	if err != nil {
		return report.Usage(told(cmd, err))
	}
	return serve(cmd.Context(), cfg, load, cmd.ErrOrStderr(), picker)
}

// usualFile is read where no other is named.
const usualFile = "pacer.yaml"

const configUsage = "configuration file; without it " + usualFile + " if there is one, else the environment"

// fileByFlag refuses arguments: who writes one means the file, mostly.
func fileByFlag(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument %q; write %s -c %s", cmd.Name(), args[0], cmd.CommandPath(), args[0])
	}
	return nil
}

// configFile is the file to read where -c says named; "" = there is none, and the
// environment says what to serve.
func configFile(named string) string {
	if named == "" {
		// Whatever stands there, so that a file that cannot be read is said.
		if _, err := os.Lstat(usualFile); err == nil {
			return usualFile
		}
	}
	return named
}

func loadConfig(file string) (*config.Config, error) {
	if file == "" {
		return config.FromEnvironment(os.LookupEnv)
	}
	return config.Load(file)
}

// serve runs the gateway until ctx ends; running requests then have
// timeouts.drain to finish. load reads the configuration again, after a change
// of its files and on SIGHUP; nil = it does not change.
//
// Whatever becomes of stderr ends nothing: it may be read slowly, or not at
// all, or be closed. What serve has to say it says there itself.
func serve(ctx context.Context, cfg *config.Config, load func() (*config.Config, error), stderr io.Writer, picker bool) error {
	signal.Ignore(syscall.SIGPIPE) // a write that fails says so
	logs := newLogs(cfg.Log, stderr)
	go logs.lines.Run()
	defer logs.lines.Close(flushTimeout)
	stdlog.SetFlags(0)
	stdlog.SetOutput(clientNotices{logs.log})
	if err := serveWith(ctx, cfg, load, logs, picker); err != nil {
		fmt.Fprintf(logs.lines, "pacer: %v\n", err)
		return fmt.Errorf("%w: %w", errReported, err)
	}
	return nil
}

// tracesTimeout is how long the last spans may take to their collector at the end.
const tracesTimeout = 2 * time.Second

// serveWith is serve where the log is open.
func serveWith(ctx context.Context, cfg *config.Config, load func() (*config.Config, error), logs *logs, picker bool) error {
	log := logs.log
	saySource(log, cfg.Source())
	for _, w := range cfg.Source().Warnings {
		log.Warn(w)
	}
	told := tracing.Options{Getenv: os.Getenv, Version: currentBuild().Version, Log: log}
	tracer, err := tracing.New(ctx, told)
	if err != nil {
		return report.Usage(err)
	}
	defer tracer.CloseWithin(tracesTimeout)
	lines, err := tracing.NewLogs(ctx, told)
	if err != nil {
		return report.Usage(err)
	}
	defer lines.CloseWithin(tracesTimeout)
	log = logs.alsoTo(lines)
	cluster := kubernetes.New(kubernetes.Options{})
	defer cluster.Close()
	engines := &fleet.Discovery{Log: log, Cluster: cluster}
	p, err := wire(engines.Of(ctx, cfg), log, options{access: logs.access, lines: logs.lines, tracer: tracer, picker: picker, discovered: engines.States})
	if err != nil {
		return err
	}
	engines.Said = func(text string) { p.watch.Note(time.Now(), "discovery", text) }
	sent, err := tracing.NewMetrics(ctx, told, p.metrics.Gatherer())
	if err != nil {
		return report.Usage(err)
	}
	defer sent.CloseWithin(tracesTimeout)
	p.level = logs.level
	p.room = takeRoom(log, cfg.Limits.Buffered)
	p.sayRoom(cfg)
	if p.systemd, err = supervisedBy(os.Getenv); err != nil {
		log.Warn("systemd cannot be told how the program is", "error", err)
	}
	if p.systemd != nil {
		p.loops = append(p.loops, func(ctx context.Context) error {
			return p.systemd.watch(ctx, func() { p.router.InService() })
		})
	}
	if load != nil {
		hup := make(chan os.Signal, 1)
		signal.Notify(hup, syscall.SIGHUP)
		defer signal.Stop(hup)
		p.loops = append(p.loops, func(ctx context.Context) error {
			return p.follow(ctx, cfg, load, engines, hup)
		})
	}
	return p.run(ctx, func(data, admin string) {
		if picker {
			fmt.Fprintf(logs.lines, "picker: ready grpc=%s admin=%s\n", data, admin)
		} else {
			fmt.Fprintf(logs.lines, "pacer: ready data=%s admin=%s\n", data, admin)
		}
		p.systemd.ready()
	})
}

// saySource says what is served: whoever starts in a folder that has a file does not
// get what the variables name.
func saySource(log *slog.Logger, s config.Source) {
	switch {
	case s.File != "":
		log.Info("serving the configuration of a file", "file", s.File)
	case s.Variables != nil:
		log.Info("serving the backend that environment variables name: there is no -c, and no "+usualFile+" in this folder", "variables", strings.Join(s.Variables, ", "))
	}
	if s.Ignored != nil {
		log.Warn("environment variables are set and not used: they name a backend only where there is no -c and no "+usualFile+" in the folder; start in another folder, or unset them",
			"variables", strings.Join(s.Ignored, ", "), "file", s.File)
	}
}

// ignoreCanceled makes the end of a context a clean end.
func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
