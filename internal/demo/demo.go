package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/loadgen"
	"github.com/pacer-dev/pacer/internal/report"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/router"
)

// Options say what a demo plays, and on which network.
type Options struct {
	Duration time.Duration
	Policy   string // who places requests, as it is shown
	Replay   string // trace file; "" = the scenario of ramp, spike and kill
	JSONFile string // "" = none
	Admin    string // address of the page
	Seed     uint64

	// Wire builds the gateway.
	Wire func(cfg *config.Config) (*Gateway, error)

	// Dial and Listen replace the network; nil means TCP.
	Dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	Listen func(addr string) (net.Listener, error)
}

// listen opens a port of the network.
func (o *Options) listen(addr string) (net.Listener, error) {
	if o.Listen != nil {
		return o.Listen(addr)
	}
	return net.Listen("tcp", addr)
}

// Gateway is what a demo sees of the gateway that it shows.
type Gateway struct {
	Book   *profiles.Book
	Router *router.Router

	// Run serves until ctx ends. It calls ready with the URLs of both ports.
	Run func(ctx context.Context, ready func(data, admin string)) error
}

// demo is one running demo.
type demo struct {
	options  Options
	fleet    []*simulated
	gateway  *Gateway
	tally    *tally
	load     load
	client   *loadgen.Client
	started  time.Time
	screen   *screen
	lateness lateness
}

// Run runs a demo until its load is over or ctx ends, and writes to out what it
// sees.
func Run(ctx context.Context, o Options, out io.Writer) error {
	load, err := newLoad(o)
	if err != nil {
		return report.Usage(err)
	}
	var file *os.File
	if o.JSONFile != "" { // opened first: a mistake should not cost a whole run
		if file, err = os.Create(o.JSONFile); err != nil {
			return report.Usage(fmt.Errorf("--json: %w", err))
		}
		defer file.Close()
	}
	d := &demo{options: o, load: load, tally: newTally(floorTPS, grace)}
	if d.fleet, err = startFleet(o); err != nil {
		return err
	}
	defer stopFleet(d.fleet)

	cfg, err := configOf(d.fleet, o.Admin)
	if err != nil {
		return err
	}
	if d.gateway, err = o.Wire(cfg); err != nil {
		return err
	}
	if err := d.run(ctx, out); err != nil {
		return err
	}
	said := d.report(ctx.Err() != nil)
	said.print(out, report.Width(out))
	if file == nil {
		return nil
	}
	enc := json.NewEncoder(file)
	enc.SetIndent("", "  ")
	if err := enc.Encode(said); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return file.Close()
}

// run starts gateway, screen and load, and ends them in the opposite order.
func (d *demo) run(ctx context.Context, out io.Writer) error {
	gatewayCtx, stopGateway := context.WithCancel(context.WithoutCancel(ctx))
	defer stopGateway()
	addresses := make(chan [2]string, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- d.gateway.Run(gatewayCtx, func(data, admin string) { addresses <- [2]string{data, admin} })
	}()
	select {
	case err := <-ended:
		return err
	case a := <-addresses:
		transport := newClientTransport(d.options)
		defer transport.CloseIdleConnections()
		d.client = &loadgen.Client{BaseURL: a[0] + "/v1", HTTP: &http.Client{Transport: transport}}
		d.screen = newScreen(out, d)
		d.screen.intro(a[0], a[1])
	}

	d.started = time.Now()
	loadCtx, stopLoad := context.WithTimeout(ctx, d.options.Duration)
	defer stopLoad()
	g, gctx := errgroup.WithContext(loadCtx)
	g.Go(func() error { return d.load.run(gctx, d) })
	g.Go(func() error { d.screen.run(gctx); return nil })
	g.Go(func() error { d.lateness.run(gctx); return nil })
	err := g.Wait()
	stopGateway()
	if endErr := <-ended; err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = endErr
	}
	return err
}
