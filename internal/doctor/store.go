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
	redisOf(ctx, o, conf, f)
	if conf.Global != nil {
		redisOf(ctx, o, *conf.Global, f)
	}
}

// redisOf looks whether a Redis answers, what it is, and whether it keeps what it is
// given.
func redisOf(ctx context.Context, o Options, conf config.Store, f *findings) {
	where := strings.Join(conf.Addrs, ", ")
	client, err := redisconn.Open(redisconn.Options{Store: conf, IOTimeout: o.Patience})
	if err != nil {
		f.fail("correct store:", "store %s: %s", where, err)
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
		refusedStore(where, err, f)
		return
	}
	facts := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	describeStore(where, facts, f)
	clock("store "+where, its.Sub(before.Add(at.Sub(before)/2)), at.Sub(before)/2, f)
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
func refusedStore(where string, err error, f *findings) {
	text := err.Error()
	switch {
	case strings.Contains(text, "WRONGPASS"), strings.Contains(text, "NOAUTH"):
		f.fail("correct username and password in store:", "store %s: the password is refused", where)
	case strings.Contains(text, "NOPERM"):
		f.fail("give the user the commands that docs/CONFIG.md lists", "store %s: the user may not do what is needed", where)
	default:
		f.fail("start Redis, or correct store:; without it every gateway learns alone", "store %s cannot be reached: %s", where, describe(err))
	}
}

// describeStore looks at version and eviction.
func describeStore(where string, facts map[string]string, f *findings) {
	name, version := "Redis", facts["redis_version"]
	if v := facts["valkey_version"]; v != "" {
		name, version = "Valkey", v
	}
	if name == "Redis" && older(version, leastRedis) {
		f.fail("update it", "store %s: Redis %s is older than %s", where, version, leastRedis)
	} else {
		f.ok("store %s: %s %s answers", where, name, version)
	}
	policy := facts["maxmemory_policy"]
	switch {
	case facts["maxmemory"] == "0" || facts["maxmemory"] == "":
		f.ok("store %s: nothing is evicted, maxmemory is not set", where)
	case policy == "noeviction":
		f.ok("store %s: nothing is evicted (noeviction)", where)
	default:
		f.warn("set maxmemory-policy noeviction", "store %s: when its memory is full it evicts keys (%s), and curves and limits of keys with them", where, policy)
	}
}

// older compares the first two numbers of two versions.
func older(version, least string) bool {
	var a, b [2]int
	_, err := fmt.Sscanf(version, "%d.%d", &a[0], &a[1])
	_, bad := fmt.Sscanf(least, "%d.%d", &b[0], &b[1])
	return err == nil && bad == nil && (a[0] < b[0] || a[0] == b[0] && a[1] < b[1])
}
