package storemove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/redisconn"
)

// passing is how long a key must have to live to be worth taking along: what is
// shorter is load, which gateways write anew each second.
const passing = time.Minute

// mostElements bounds what one key may hold that is taken along.
const mostElements = 1 << 20

// Migrated counts what became of the keys of a store.
type Migrated struct {
	From, To string
	Copied   int // keys, or targets where one of the stores is a file
	Left     int // stood in the new store already
	Passing  int // live for less than a minute: the gateways write them anew
}

// Migrate takes all that the store of from holds into that of to: curves, keys, usage,
// budgets, batch jobs, history. Nothing is taken away from the old one. What the new one
// has already stays. Where one of them is no Redis, the curves are all that moves.
func Migrate(ctx context.Context, from, to *config.Config) (*Migrated, error) {
	if from.Store.Memory || to.Store.Memory {
		return migrateCurves(ctx, from, to)
	}
	old, err := redisconn.Open(redisconn.Options{Store: from.Store, IOTimeout: patience})
	if err != nil {
		return nil, err
	}
	defer old.Close()
	next, err := redisconn.Open(redisconn.Options{Store: to.Store, IOTimeout: patience})
	if err != nil {
		return nil, err
	}
	defer next.Close()
	m := &Migrated{From: address(from), To: address(to)}
	if m.From == m.To && from.Store.Prefix == to.Store.Prefix {
		return nil, errors.New("both configurations name the same store and the same prefix; there is nothing to move")
	}
	var keys []string
	err = old.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		keys, err = allKeys(ctx, rdb, old.Prefix())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w (its user needs +scan +type +pttl beside the commands of docs/CONFIG.md, and +hgetall +lrange +zrange +smembers +get)", m.From, err)
	}
	for _, key := range keys {
		renamed := next.Prefix() + strings.TrimPrefix(key, old.Prefix())
		if err := m.copy(ctx, old, next, key, renamed); err != nil {
			return m, fmt.Errorf("%s: %d of %d keys are there; call it again to go on: %w", key, m.Copied+m.Left, len(keys), err)
		}
	}
	return m, nil
}

func address(c *config.Config) string {
	return fmt.Sprintf("Redis at %s, database %d", strings.Join(c.Store.Addrs, ", "), c.Store.DB)
}

func migrateCurves(ctx context.Context, from, to *config.Config) (*Migrated, error) {
	f, where, err := Export(ctx, from)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		return nil, err
	}
	done, err := Import(ctx, to, &b, false)
	if err != nil {
		return nil, err
	}
	return &Migrated{From: where, To: done.Where, Copied: len(done.Taken), Left: len(done.Left)}, nil
}

// allKeys are the keys of our prefix, on all masters of a cluster.
func allKeys(ctx context.Context, rdb redis.UniversalClient, prefix string) (keys []string, err error) {
	var mu sync.Mutex
	scan := func(ctx context.Context, node redis.Cmdable) error {
		each := node.Scan(ctx, 0, escapeGlob(prefix)+":{*", 1000).Iterator()
		for each.Next(ctx) {
			mu.Lock()
			keys = append(keys, each.Val())
			mu.Unlock()
		}
		return each.Err()
	}
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
		return keys, err
	}
	return keys, scan(ctx, rdb)
}

// escapeGlob writes s so that a pattern means just it.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(s)
}

// copy takes one key over under its new name, unless it is there. It is read by its type,
// not dumped: a dump of a newer server is nothing to an older one.
func (m *Migrated) copy(ctx context.Context, old, next *redisconn.Client, key, renamed string) error {
	var write func(context.Context, redis.Pipeliner)
	var life time.Duration
	err := old.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		if life, err = rdb.PTTL(ctx, key).Result(); err != nil {
			return err
		}
		write, err = read(ctx, rdb, key, renamed)
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", m.From, err)
	}
	if write == nil || life >= 0 && life < passing { // -1 = it stays for good
		m.Passing++
		return nil
	}
	err = next.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		if there, err := rdb.Exists(ctx, renamed).Result(); err != nil || there > 0 {
			m.Left += int(there)
			return err
		}
		_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			write(ctx, p)
			if life >= 0 {
				p.PExpire(ctx, renamed, life)
			}
			return nil
		})
		if err == nil {
			m.Copied++
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", m.To, err)
	}
	return nil
}

// read reads key and returns what writes it again under another name; nil = it is gone.
func read(ctx context.Context, rdb redis.UniversalClient, key, renamed string) (func(context.Context, redis.Pipeliner), error) {
	kind, err := rdb.Type(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "none":
		return nil, nil
	case "string":
		text, err := rdb.Get(ctx, key).Result()
		return func(ctx context.Context, p redis.Pipeliner) { p.Set(ctx, renamed, text, 0) }, err
	case "hash":
		fields, err := rdb.HGetAll(ctx, key).Result()
		return func(ctx context.Context, p redis.Pipeliner) { p.HSet(ctx, renamed, fields) }, tooMany(err, len(fields))
	case "set":
		members, err := rdb.SMembers(ctx, key).Result()
		return func(ctx context.Context, p redis.Pipeliner) { p.SAdd(ctx, renamed, anys(members)...) }, tooMany(err, len(members))
	case "zset":
		members, err := rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		return func(ctx context.Context, p redis.Pipeliner) { p.ZAdd(ctx, renamed, members...) }, tooMany(err, len(members))
	case "list":
		elements, err := rdb.LRange(ctx, key, 0, -1).Result()
		return func(ctx context.Context, p redis.Pipeliner) { p.RPush(ctx, renamed, anys(elements)...) }, tooMany(err, len(elements))
	}
	return nil, fmt.Errorf("a key of type %s, which no version of Pacer writes", kind)
}

func tooMany(err error, n int) error {
	if err == nil && n > mostElements {
		return fmt.Errorf("it has %d elements; no version of Pacer writes more than %d", n, mostElements)
	}
	return err
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
