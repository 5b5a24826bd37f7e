package history

import "math"

const (
	// crowdSpan is over how many seconds refusals are remembered, crowdLeast how many
	// there have to be, and crowdShare how many of them are most.
	crowdSpan  = 10.0
	crowdLeast = 10.0
	crowdShare = 0.8
)

// crowd finds the key of whom most of the refused are, by the vote of Boyer and Moore: one
// name is kept, however many keys there are. The zero value has seen nobody.
type crowd struct {
	key   string
	votes float64 // for key, less those for others
	own   float64 // refusals of key since it is kept
	all   float64
}

func (c *crowd) add(key string) {
	c.all++
	switch {
	case key == c.key:
		c.votes++
		c.own++
	case c.votes >= 1:
		c.votes--
	default:
		c.key, c.votes, c.own = key, 1, 1
	}
}

// fade forgets a second.
func (c *crowd) fade() {
	keep := math.Exp(-1 / crowdSpan)
	c.votes, c.own, c.all = c.votes*keep, c.own*keep, c.all*keep
}

// most returns the key of most of the refused; "" = there is none.
func (c *crowd) most() string {
	if c.all < crowdLeast || c.own < crowdShare*c.all {
		return ""
	}
	return c.key
}
