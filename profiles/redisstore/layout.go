package redisstore

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pacer-dev/pacer/internal/redisconn"
	"github.com/pacer-dev/pacer/profiles"
)

// layoutVersion is that of the fields of a hash. A hash with another is left
// alone.
const layoutVersion = "1"

// The keys of a separate target are others: its sums are over its own users
// alone, and a delta of each may go out under one number.
func (s *Store) sumsKey(t profiles.Target) string {
	if t.Separate {
		return s.o.Conn.Key(t.Backend, "separate", t.Model)
	}
	return s.o.Conn.Key(t.Backend, "sums", t.Model)
}

func (s *Store) seqKey(t profiles.Target, replica string) string {
	if t.Separate {
		return s.o.Conn.Key(t.Backend, "separate-seq", replica)
	}
	return s.o.Conn.Key(t.Backend, "seq", replica)
}

// pushCall is one run of push.lua.
func (s *Store) pushCall(replica string, seq uint64, d *profiles.Delta) redisconn.Call {
	args := []any{
		layoutVersion, d.Target.Model, seq, s.o.Life.Milliseconds(), seqLife.Milliseconds(),
		newBirth(), stamp(d.Sums.Updated), profiles.SlowHalfLife.Milliseconds(),
	}
	args = append(args, shiftArgs(d.Shift)...)
	for _, g := range d.Sums.Groups() {
		// The factor is worked out here, so that it is the very one of
		// profiles.Sums.Add. The slow copy has faded as a whole before.
		keep := math.Exp2(-g.Occupied / s.o.HalfLife.Seconds())
		if g.Slow {
			keep = 1
		}
		args = append(args, number(keep), len(g.Fields))
		for _, f := range g.Fields {
			args = append(args, f.Name, number(f.Value))
		}
	}
	return redisconn.Call{Keys: []string{s.sumsKey(d.Target), s.seqKey(d.Target, replica)}, Args: args}
}

// shiftArgs are those of push.lua that are about a shift.
func shiftArgs(d profiles.Shift) []any {
	factors := d.Factors()
	args := []any{count(d.From), count(d.To), number(d.Pace()), len(factors)}
	for _, f := range factors {
		args = append(args, f.Name, number(f.Value))
	}
	return args
}

// count writes a number of shifts; '0' is also that of a hash without one.
func count(n uint64) string { return strconv.FormatUint(n, 10) }

// What seed.lua does where the target has sums.
const (
	seedLost    = "lost"
	seedKeep    = "keep"
	seedReplace = "replace"
)

// seedCall is one run of seed.lua.
func (s *Store) seedCall(t profiles.Target, sums profiles.Sums, how string) redisconn.Call {
	args := []any{layoutVersion, newBirth(), s.o.Life.Milliseconds(), stamp(sums.Updated), count(sums.Shifts), how}
	for _, g := range sums.Groups() {
		for _, f := range g.Fields {
			args = append(args, f.Name, number(f.Value))
		}
	}
	return redisconn.Call{Keys: []string{s.sumsKey(t)}, Args: args}
}

// number writes v so that reading it gives v again.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// rulesInLua writes profiles.Rules as push.lua wants them: for each kind of group
// a list of {x, of, least, most, level, slack, and}, with sums counted from 1.
func rulesInLua() string {
	kinds := map[string][]string{}
	for _, r := range profiles.Rules() {
		and := ""
		if r.Square {
			and = fmt.Sprintf(",%d", r.And+1)
		}
		kinds[r.Kind] = append(kinds[r.Kind], fmt.Sprintf("{%d,%d,%g,%g,%g,%g%s}", r.X+1, r.Of+1, r.Least, r.Most, r.Level, r.Slack, and))
	}
	var b strings.Builder
	b.WriteString("local rules = {\n")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(&b, "  %s = {%s},\n", kind, strings.Join(kinds[kind], ","))
	}
	b.WriteString("}\nlocal tops = {")
	for i := range profiles.NumBins - 1 {
		_, hi := profiles.BinBounds(i)
		fmt.Fprintf(&b, "%d,", hi)
	}
	b.WriteString("2147483648}\n")
	return b.String()
}

// stamp is t in microseconds, "0" for the zero time. They fit into a double,
// which is all the numbers that Lua has, until the year 2255.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

// hash is what the server holds for one target.
type hash struct {
	birth string
	sums  profiles.Sums
}

// readHash reads the fields of a hash. found says what there is instead when
// it is not in our layout. The error is that of sums in our layout that no
// replica can have written.
func readHash(fields map[string]string) (h hash, found string, err error) {
	if v := fields["@v"]; v != layoutVersion {
		return hash{}, foundVersion(v), nil
	}
	h.birth = fields["@birth"]
	if h.birth == "" {
		return h, "", &profiles.ImpossibleError{Field: "@birth", Found: `""`}
	}
	var updated time.Time
	if text := fields["@updated"]; text != "" {
		us, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return h, "", &profiles.ImpossibleError{Field: "@updated", Found: strconv.Quote(text[:min(len(text), 40)])}
		}
		updated = time.UnixMicro(us).UTC()
	}
	if h.sums, err = profiles.ParseSums(fields, updated); err != nil {
		return h, "", err
	}
	if text := fields["@shifts"]; text != "" {
		if h.sums.Shifts, err = strconv.ParseUint(text, 10, 64); err != nil {
			return h, "", &profiles.ImpossibleError{Field: "@shifts", Found: strconv.Quote(text[:min(len(text), 40)])}
		}
	}
	return h, "", nil
}

func foundVersion(v string) string {
	if v == "" {
		return "no version"
	}
	return "version " + strconv.Quote(v)
}

// readReply reads {'ok', …} as …, and {'kept'} as nil. found says what there is instead when the
// key is not in our layout: {'version', v}, or a command that the key's type
// made fail. A delta that was refused is an *profiles.ImpossibleError.
func readReply(reply *redis.Cmd) (rest []string, found string, err error) {
	list, err := reply.StringSlice()
	switch {
	case redisconn.AboutCommand(err):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	case len(list) >= 1 && list[0] == "ok":
		return list[1:], "", nil
	case len(list) == 1 && list[0] == "kept":
		return nil, "", nil
	case len(list) == 2 && list[0] == "version":
		return nil, foundVersion(list[1]), nil
	case len(list) == 3 && list[0] == "refused":
		return nil, "", &profiles.ImpossibleError{Field: list[1], Found: list[2]}
	}
	return nil, "", errReply
}

// pairs reads name, value, name, value ….
func pairs(list []string) map[string]string {
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}
