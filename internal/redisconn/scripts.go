package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"

	core "github.com/pacer-dev/pacer/internal/breaker"
)

// Call is one run of a script. All keys share a tag.
type Call struct {
	Keys []string
	Args []any
}

// Run runs script once per call, in one round trip when the server knows it, through
// the breaker as Do does. A server that does not know it (it was restarted, or failed
// over) gets the source with a second round trip. It returns the reply of each call; an
// error of one call is in its reply, and the error returned is that no reply came.
func (c *Client) Run(ctx context.Context, script *redis.Script, calls ...Call) (replies []*redis.Cmd, err error) {
	err = c.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		replies, err = runAll(ctx, rdb, script, calls)
		return err
	})
	return replies, err
}

func runAll(ctx context.Context, rdb redis.UniversalClient, script *redis.Script, calls []Call) ([]*redis.Cmd, error) {
	replies := make([]*redis.Cmd, len(calls))
	_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range calls {
			replies[i] = script.EvalSha(ctx, p, c.Keys, c.Args...)
		}
		return nil
	})
	if err := transport(err); err != nil {
		return nil, err
	}
	var unknown []int
	for i, r := range replies {
		if redis.HasErrorPrefix(r.Err(), "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return replies, nil
	}
	_, err = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, i := range unknown {
			replies[i] = script.Eval(ctx, p, calls[i].Keys, calls[i].Args...)
		}
		return nil
	})
	return replies, transport(err)
}

// transport keeps an error that is not a reply, or that says that the server
// cannot serve: a pipeline reports the first error of any of its commands.
func transport(err error) error {
	if judge(context.Background(), err) == core.Worked {
		return nil
	}
	return err
}
