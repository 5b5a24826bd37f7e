package usage

import (
	"math"
	"time"
)

// Money is an amount in billionths of a US dollar. Sums of it are exact.
type Money int64

// Dollar is one US dollar.
const Dollar Money = 1e9

// maxMoney bounds what one request can cost, so that sums cannot overflow.
const maxMoney = 1_000_000 * float64(Dollar)

// Dollars returns the amount that is nearest to usd: 0 for what is no number,
// at most a million.
func Dollars(usd float64) Money {
	if math.IsNaN(usd) {
		return 0
	}
	return Money(math.Round(min(max(usd*float64(Dollar), -maxMoney), maxMoney)))
}

// USD returns m in dollars.
func (m Money) USD() float64 { return float64(m) / float64(Dollar) }

// Other stands for names beyond what is told apart.
const Other = "(other)"

// Of is whose and what a request was. Each field may be empty: no key, no team,
// no tag.
type Of struct {
	Key, Team, Route, Backend, Model string

	// Tags are those that the configuration allows, as "env=prod,project=x" in
	// the order of the configuration.
	Tags string
}

// crowd returns o without what a crowd of clients could make up.
func (o Of) crowd() Of {
	return Of{Key: o.Key, Team: o.Team, Route: Other, Backend: o.Backend, Model: Other, Tags: Other}
}

// Sums are what requests used. Cached is part of Input, Reasoning of Output.
type Sums struct {
	Requests                         int64
	Input, Cached, Output, Reasoning int64 // tokens
	Cost                             Money
}

// Add adds b to s.
func (s *Sums) Add(b Sums) {
	s.Requests += b.Requests
	s.Input += b.Input
	s.Cached += b.Cached
	s.Output += b.Output
	s.Reasoning += b.Reasoning
	s.Cost += b.Cost
}

// Record is one settled request.
type Record struct {
	At time.Time // when it was settled
	Of
	Sums
}

// Hour is a number of hours since 1970, in UTC.
type Hour int64

// HourOf returns the hour that t lies in.
func HourOf(t time.Time) Hour { return Hour(math.Floor(float64(t.Unix()) / 3600)) }

// End returns the hour from which on nothing was used yet: of replicas, one may have a clock
// that is an hour ahead, and now may be of one that is an hour behind.
func End(now time.Time) Hour { return HourOf(now) + 3 }

// Start returns when h begins.
func (h Hour) Start() time.Time { return time.Unix(int64(h)*3600, 0).UTC() }

// Day returns the first hour of the day that h lies in.
func (h Hour) Day() Hour { return h - (h%24+24)%24 }

// Cell is what was used of one kind within one hour.
type Cell struct {
	Hour Hour
	Of
	Sums
}
