package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/redisconn"
)

const (
	// leastRedis is the oldest version that has all commands.
	leastRedis = "6.2"

	// mostSkew is how far the store's clock may be from ours: the times in limits
	// of keys are the store's, and those in log lines ours.
	mostSkew = time.Second
)

// store looks at the store, and at that of all regions.
func store(ctx context.Context, o Options, f *findings) {
	conf := o.Config.Store
	if conf.Memory {
		f.ok("store: memory; curves are of this gateway alone and go with it")
		return
	}
	redisOf(ctx, o, ofRegion(conf), f)
	if conf.Global != nil {
		redisOf(ctx, o, ofAllRegions(*conf.Global), f)
	}
}

// redisAsked is one Redis, and what is said of it.
type redisAsked struct {
	config.Store
	where   string // its key of the configuration, and its addresses
	key     string // its key
	without string // what becomes of gateways without it
	evicts  string // what goes where it evicts keys
}

func ofRegion(s config.Store) redisAsked {
	return redisAsked{
		Store: s, where: "store " + strings.Join(s.Addrs, ", "), key: "store",
		without: "every gateway learns alone", evicts: "curves and limits of keys",
	}
}

func ofAllRegions(s config.Store) redisAsked {
	return redisAsked{
		Store: s, where: "store.global " + strings.Join(s.Addrs, ", "), key: "store.global",
		without: "every gateway spends its own part of each budget", evicts: "budgets, usage and keys that were handed out",
	}
}

// redisOf looks whether a Redis answers, what it is, and whether it keeps what it is
// given.
func redisOf(ctx context.Context, o Options, a redisAsked, f *findings) {
	client, err := redisconn.Open(redisconn.Options{Store: a.Store, IOTimeout: o.Patience})
	if err != nil {
		f.fail("correct "+a.key+":", "%s: %s", a.where, err)
		return
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, o.Patience)
	defer cancel()
	var (
		info            string
		before, its, at time.Time
	)
	err = client.Do(ctx, func(ctx context.Context, r redis.UniversalClient) (err error) {
		if info, err = r.Info(ctx).Result(); err != nil {
			return err
		}
		before = time.Now()
		its, err = r.Time(ctx).Result()
		at = time.Now()
		return err
	})
	if err != nil {
		refusedStore(a, err, f)
		return
	}
	facts := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	describeStore(a, facts, f)
	clock(a.where, its.Sub(before.Add(at.Sub(before)/2)), at.Sub(before)/2, f)
}

// clock looks how far a clock is ahead of ours, known to within unsure.
func clock(whose string, ahead, unsure time.Duration, f *findings) {
	if ahead.Abs() > mostSkew+unsure {
		f.warn("run NTP on both machines", "%s: its clock is %s of ours", whose, aheadOrBehind(ahead))
		return
	}
	f.ok("%s: its clock agrees with ours within %v", whose, mostSkew)
}

func aheadOrBehind(d time.Duration) string {
	if d < 0 {
		return fmt.Sprintf("%v behind", -d.Round(time.Second))
	}
	return fmt.Sprintf("%v ahead", d.Round(time.Second))
}

// refusedStore says why there is no answer. What Redis says of a password holds
// none.
func refusedStore(a redisAsked, err error, f *findings) {
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"):
		f.fail("correct username and password in "+a.key+":", "%s: the password is refused", a.where)
	case strings.Contains(text, "NOPERM"):
		f.fail("give the user the commands that docs/CONFIG.md lists", "%s: the user may not do what is needed", a.where)
	default:
		f.fail("start Redis, or correct "+a.key+":; without it "+a.without, "%s cannot be reached: %s", a.where, describe(err))
	}
}

// describeStore looks at version and eviction.
func describeStore(a redisAsked, facts map[string]string, f *findings) {
	name, version := "Redis", facts["redis_version"]
	if v := facts["valkey_version"]; v != "" {
		name, version = "Valkey", v
	}
	if name == "Redis" && older(version, leastRedis) {
		f.fail("update it", "%s: Redis %s is older than %s", a.where, version, leastRedis)
	} else {
		f.ok("%s: %s %s answers", a.where, name, version)
	}
	policy := facts["maxmemory_policy"]
	switch {
	case facts["maxmemory"] == "0" || facts["maxmemory"] == "":
		f.ok("%s: nothing is evicted, maxmemory is not set", a.where)
	case policy == "noeviction":
		f.ok("%s: nothing is evicted (noeviction)", a.where)
	default:
		f.warn("set maxmemory-policy noeviction", "%s: when its memory is full it evicts keys (%s), and %s with them", a.where, policy, a.evicts)
	}
}

// older compares the first two numbers of two versions.
func older(version, least string) bool {
	var a, b [2]int
	_, err := fmt.Sscanf(version, "%d.%d", &a[0], &a[1])
	_, bad := fmt.Sscanf(least, "%d.%d", &b[0], &b[1])
	return err == nil && bad == nil && (a[0] < b[0] || a[0] == b[0] && a[1] < b[1])
}
