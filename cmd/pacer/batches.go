package main

import (
	"context"
	"time"

	"github.com/pacer-dev/pacer/api"
	"github.com/pacer-dev/pacer/batch"
	"github.com/pacer-dev/pacer/batch/redisbatch"
	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/redisconn"
)

// batchTimeout is how long Redis may take for a file. What else is shared is small
// and has a connection, and a breaker, of its own.
const batchTimeout = 5 * time.Second

// batchStore is where files and jobs are kept.
func (p *program) batchStore(cfg *config.Config) (batch.Store, error) {
	if cfg.Store.Memory {
		return batch.NewMemory(cfg.Batches.Bytes, cfg.Batches.Keep), nil
	}
	conn, err := redisconn.Open(redisconn.Options{Store: cfg.Store, IOTimeout: batchTimeout})
	if err != nil {
		return nil, err
	}
	p.close = append(p.close, conn.Close)
	return redisbatch.Open(conn, cfg.Batches.Bytes, cfg.Batches.Keep), nil
}

// jobs are the batch jobs that run, as the admin port tells them.
func (p *program) jobs(ctx context.Context) (all []api.Job, err error) {
	running, err := p.batches.Running(ctx, api.MaxJobs)
	for _, j := range running {
		all = append(all, api.Job{
			ID: j.ID, Key: j.Owner, Endpoint: j.Endpoint, Cancelling: j.Status == batch.Cancelling,
			Total: j.Total, Completed: j.Completed, Failed: j.Failed, Created: j.Created.UTC(), Expires: j.Expires.UTC(),
		})
	}
	return all, err
}

// runBatches does the jobs.
func (p *program) runBatches(cfg *config.Config) {
	failing := outage{alone: func() bool { return p.shared.alone() }}
	r := batch.NewRunner(batch.Options{
		Store: p.batches, Serve: p.gateway.ServeLine, Log: p.log, Slots: cfg.Batches.Slots, Halves: p.gateway.ManyKeys,
		Asked: func(err error) {
			if failing.tell(time.Now(), err) {
				p.log.Warn("batch jobs rest: their store cannot be asked", "error", err)
			}
		},
	})
	p.loops = append(p.loops, r.Run)
}
