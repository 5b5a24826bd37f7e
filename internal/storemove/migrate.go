package storemove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/keys/rediskeys"
	"github.com/pacer-dev/pacer/usage/redisusage"
)

// passing is how long a key must have to live to be worth taking along: what is
// shorter is load, which gateways write anew each second.
const passing = time.Minute

// mostElements bounds what one key may hold that is taken along.
const mostElements = 1 << 20

const (
	// perCommand is how many elements one command writes: a server does nothing else
	// while it does.
	perCommand = 1000

	// besideLife is how long a part of a key lives that nobody goes on with.
	besideLife = 10 * time.Minute
)

// Migrated counts what became of the keys of a store.
type Migrated struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Copied  int    `json:"copied"` // keys, or targets where one of the stores is a file
	Left    int    `json:"left"`   // stood in the new store already
	Passing int    `json:"-"`      // live for less than a minute: the gateways write them anew
}

// Migrate takes all that the store of from holds into that of to: curves, keys, usage,
// budgets, batch jobs, history. Nothing is taken away from the old one. What the new one
// has already stays. Where one of them is no Redis, the curves are all that moves.
//
// Budgets, usage and keys go from where the old configuration has them to where the new
// one does: into the store of all regions, or out of it.
func Migrate(ctx context.Context, from, to *config.Config) (*Migrated, error) {
	if from.Store.Memory || to.Store.Memory {
		return migrateCurves(ctx, from, to)
	}
	m := &Migrated{From: described(from.Store), To: described(to.Store)}
	all := moves(from.Store, to.Store)
	if len(all) == 0 {
		return nil, errors.New("both configurations name the same store and the same prefix; there is nothing to move")
	}
	for _, move := range all {
		if err := m.run(ctx, move); err != nil {
			return m, err
		}
	}
	return m, nil
}

// move is one way of keys, from a Redis into another one.
type move struct {
	from, to config.Store
	takes    func(key string) bool // of keys without their prefix
}

// moves are the ways that all keys take, less those that end where they began.
func moves(from, to config.Store) (out []move) {
	ofPeople := func(key string) bool { return redisusage.Owns(key) || rediskeys.Owns(key) }
	for _, way := range []move{
		{from: from, to: to, takes: func(key string) bool { return !ofPeople(key) }},
		{from: ofAllRegions(from), to: ofAllRegions(to), takes: ofPeople},
	} {
		if address(way.from) != address(way.to) || way.from.Prefix != way.to.Prefix {
			out = append(out, way)
		}
	}
	return out
}

// ofAllRegions is the store where s has what is of people.
func ofAllRegions(s config.Store) config.Store {
	if s.Global != nil {
		return *s.Global
	}
	return s
}

// run copies all keys that w takes.
func (m *Migrated) run(ctx context.Context, w move) error {
	old, err := redisconn.Open(redisconn.Options{Store: w.from, IOTimeout: patience})
	if err != nil {
		return err
	}
	defer old.Close()
	next, err := redisconn.Open(redisconn.Options{Store: w.to, IOTimeout: patience})
	if err != nil {
		return err
	}
	defer next.Close()
	var keys []string
	err = old.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		keys, err = allKeys(ctx, rdb, old.Prefix())
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w (its user needs +scan +type +pttl beside the commands of docs/CONFIG.md, and +hgetall +lrange +zrange +smembers +get)", address(w.from), err)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return !w.takes(strings.TrimPrefix(key, old.Prefix()+":")) })
	for i, key := range keys {
		renamed := next.Prefix() + strings.TrimPrefix(key, old.Prefix())
		if err := m.copy(ctx, old, next, key, renamed); err != nil {
			return fmt.Errorf("from %s to %s: %s: %d of %d keys are there; call it again to go on: %w", address(w.from), address(w.to), key, i, len(keys), err)
		}
	}
	return nil
}

func address(s config.Store) string {
	return fmt.Sprintf("Redis at %s, database %d", strings.Join(s.Addrs, ", "), s.DB)
}

// described is s, and the store of all regions where it has one.
func described(s config.Store) string {
	if s.Global == nil {
		return address(s)
	}
	return address(s) + " (of all regions: " + address(*s.Global) + ")"
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
	var pieces []piece
	var life time.Duration
	err := old.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) (err error) {
		if life, err = rdb.PTTL(ctx, key).Result(); err != nil {
			return err
		}
		pieces, err = read(ctx, rdb, key)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	if len(pieces) == 0 || life >= 0 && life < passing { // -1 = it stays for good
		m.Passing++
		return nil
	}
	moved, err := put(ctx, next, renamed, pieces, life)
	switch {
	case err != nil:
		return fmt.Errorf("writing: %w", err)
	case moved:
		m.Copied++
	default:
		m.Left++
	}
	return nil
}

// put makes a key of pieces, unless it is there. They are written beside it, each in an
// exchange of its own, and put there whole. A life below 0 is one without an end.
func put(ctx context.Context, next *redisconn.Client, key string, pieces []piece, life time.Duration) (moved bool, err error) {
	beside := key + ":moving" // in the same slot of a cluster
	there := false
	err = next.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		n, err := rdb.Exists(ctx, key).Result()
		if there = n > 0; err != nil || there {
			return err
		}
		return rdb.Del(ctx, beside).Err() // what a move that broke off has left
	})
	if err != nil || there {
		return false, err
	}
	for _, write := range pieces {
		err := next.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
			_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				write(ctx, p, beside)
				p.PExpire(ctx, beside, besideLife)
				return nil
			})
			return err
		})
		if err != nil {
			return false, err
		}
	}
	err = next.Do(ctx, func(ctx context.Context, rdb redis.UniversalClient) error {
		var renamed *redis.BoolCmd
		_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			if life < 0 {
				p.Persist(ctx, beside)
			} else {
				p.PExpire(ctx, beside, life)
			}
			renamed = p.RenameNX(ctx, beside, key)
			p.Del(ctx, beside) // where somebody else was first
			return nil
		})
		moved = err == nil && renamed.Val()
		return err
	})
	return moved, err
}

// piece writes a part of what one key holds.
type piece func(ctx context.Context, to redis.Pipeliner, key string)

// read reads key and returns what writes it again; nil = it is gone.
func read(ctx context.Context, rdb redis.UniversalClient, key string) ([]piece, error) {
	kind, err := rdb.Type(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	switch kind {
	case "none":
		return nil, nil
	case "string":
		text, err := rdb.Get(ctx, key).Result()
		return []piece{func(ctx context.Context, p redis.Pipeliner, key string) { p.Set(ctx, key, text, 0) }}, err
	case "hash":
		fields, err := rdb.HGetAll(ctx, key).Result()
		return inPieces(slices.Collect(maps.Keys(fields)), err, func(ctx context.Context, p redis.Pipeliner, key string, names []string) {
			words := make([]string, 0, 2*len(names))
			for _, name := range names {
				words = append(words, name, fields[name])
			}
			p.HSet(ctx, key, words)
		})
	case "set":
		members, err := rdb.SMembers(ctx, key).Result()
		return inPieces(members, err, func(ctx context.Context, p redis.Pipeliner, key string, some []string) {
			p.SAdd(ctx, key, some)
		})
	case "zset":
		members, err := rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		return inPieces(members, err, func(ctx context.Context, p redis.Pipeliner, key string, some []redis.Z) { p.ZAdd(ctx, key, some...) })
	case "list":
		elements, err := rdb.LRange(ctx, key, 0, -1).Result()
		return inPieces(elements, err, func(ctx context.Context, p redis.Pipeliner, key string, some []string) {
			p.RPush(ctx, key, some)
		})
	}
	return nil, fmt.Errorf("a key of type %s, which no version of Pacer writes", kind)
}

// inPieces are those that write all of a list.
func inPieces[T any](list []T, err error, write func(context.Context, redis.Pipeliner, string, []T)) (pieces []piece, _ error) {
	if err == nil && len(list) > mostElements {
		err = fmt.Errorf("it has %d elements; no version of Pacer writes more than %d", len(list), mostElements)
	}
	if err != nil {
		return nil, err
	}
	for some := range slices.Chunk(list, perCommand) {
		pieces = append(pieces, func(ctx context.Context, p redis.Pipeliner, key string) { write(ctx, p, key, some) })
	}
	return pieces, nil
}
