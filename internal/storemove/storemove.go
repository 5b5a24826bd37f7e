// Package storemove takes what a store holds elsewhere: curves into a file and out of
// one, and all of a store into another. What a running gateway does it does with Redis
// alone; this is for the people who move it.
package storemove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/fleet"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/profiles/curvesfile"
	"github.com/pacer-dev/pacer/profiles/learn"
	"github.com/pacer-dev/pacer/profiles/redisstore"
)

// patience bounds one exchange with a store: nobody else waits for it.
const patience = 10 * time.Second

// CurvesFile is where a gateway without Redis keeps its curves.
func CurvesFile(stateDir string) string { return filepath.Join(stateDir, "curves.json") }

// curves is a store of curves that can be closed.
type curves struct {
	profiles.Adopter
	where string       // for people
	done  func() error // writes what was changed, where that is not at once; never nil
}

func nothing() error { return nil }

// open opens the curves of cfg: in Redis, or in the file of a gateway without.
func open(cfg *config.Config) (*curves, func(), error) {
	if !cfg.Store.Memory {
		conn, err := redisconn.Open(redisconn.Options{Store: cfg.Store, IOTimeout: patience})
		if err != nil {
			return nil, nil, err
		}
		store := redisstore.Open(redisstore.Options{Conn: conn, Timeout: patience})
		return &curves{store, "Redis at " + strings.Join(cfg.Store.Addrs, ", "), nothing}, conn.Close, nil
	}
	if cfg.StateDir == "" {
		return nil, nil, errors.New("store is memory and state_dir is not set: the curves are in the gateway alone; set state_dir: DIRECTORY, or a store, and start it again")
	}
	path := CurvesFile(cfg.StateDir)
	file, err := curvesfile.Load(path)
	if err != nil {
		return nil, nil, err
	}
	m := &learn.Memory{}
	if file != nil {
		sums, err := file.Sums()
		if err == nil {
			_, err = m.Adopt(context.Background(), sums, true)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	save := func() error {
		if err := os.MkdirAll(cfg.StateDir, 0o700); err != nil {
			return err
		}
		return curvesfile.New(time.Now(), m.All()).Save(path)
	}
	return &curves{m, path, save}, func() {}, nil
}

// Export returns the curves that the store of cfg holds of the targets of cfg, and where
// they were.
func Export(ctx context.Context, cfg *config.Config) (f *curvesfile.File, where string, err error) {
	from, done, err := open(cfg)
	if err != nil {
		return nil, "", err
	}
	defer done()
	sums, err := from.Load(ctx, targets(ctx, cfg))
	if err != nil {
		return nil, "", err
	}
	return curvesfile.New(time.Now(), sums), from.where, nil
}

// targets are those of cfg and of what its backends discover.
func targets(ctx context.Context, cfg *config.Config) []profiles.Target {
	cfg = (&fleet.Discovery{Log: slog.New(slog.DiscardHandler)}).Of(ctx, cfg)
	book := profiles.NewBook(profiles.Options{})
	_ = fleet.Believe(book, cfg) // a prior that cannot be read has nothing to do with what was learned
	return book.Targets()
}

// Imported is what became of the curves of a file.
type Imported struct {
	Where   string            // the store
	Taken   []profiles.Target // stand in the store now
	Left    []profiles.Target // the store had some of them already, and they were not to be replaced
	Unknown []profiles.Target // the configuration does not have; they were taken all the same
}

// Import puts the curves of r into the store of cfg. Those that it has already stay
// unless replace is true.
func Import(ctx context.Context, cfg *config.Config, r io.Reader, replace bool) (*Imported, error) {
	file, err := curvesfile.Read(r)
	if err != nil {
		return nil, err
	}
	sums, err := file.Sums()
	if err != nil {
		return nil, err
	}
	to, done, err := open(cfg)
	if err != nil {
		return nil, err
	}
	defer done()
	left, err := to.Adopt(ctx, sums, replace)
	if err == nil {
		err = to.done()
	}
	if err != nil {
		return nil, err
	}
	out := &Imported{Where: to.where, Left: left}
	known := targets(ctx, cfg)
	for i := range file.Curves {
		c := &file.Curves[i]
		t := profiles.Target{Backend: c.Backend, Model: c.Model, Separate: c.Separate}
		if !slices.Contains(left, t) {
			out.Taken = append(out.Taken, t)
		}
		if !slices.Contains(known, t) {
			out.Unknown = append(out.Unknown, t)
		}
	}
	return out, nil
}
