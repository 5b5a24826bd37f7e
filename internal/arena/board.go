package arena

import (
	"slices"
	"strings"
	"time"

	"github.com/pacer-dev/pacer/router"
	"github.com/pacer-dev/pacer/router/peers"
)

// board is what the gateways told last of their loads. What peers adds up anew for
// each reader is added up here once for all who run nothing on a backend: a hundred
// gateways and a thousand engines would take days otherwise. The zero value has
// heard nobody.
type board struct {
	papers   []*paper // by the names of the replicas
	backends map[string]*column
}

// paper is the report of one replica. Nothing in it is changed.
type paper struct {
	replica string
	at      time.Duration
	report  peers.Report
}

// column is what all say of one backend.
type column struct {
	name    string
	entries []entry // by the names of the replicas
	sum     router.Load
	summed  bool // sum is that of entries
}

type entry struct {
	paper *paper
	load  router.Load
}

// put replaces what the replica told before.
func (b *board) put(now time.Duration, replica string, r peers.Report) {
	if b.backends == nil {
		b.backends = map[string]*column{}
	}
	b.drop(replica)
	p := &paper{replica: replica, at: now, report: r}
	i, _ := slices.BinarySearchFunc(b.papers, replica, comparePaper)
	b.papers = slices.Insert(b.papers, i, p)
	r.Each(func(backend string, l router.Load) {
		c := b.backends[backend]
		if c == nil {
			c = &column{name: backend}
			b.backends[backend] = c
		}
		i, _ := slices.BinarySearchFunc(c.entries, replica, compareEntry)
		c.entries, c.summed = slices.Insert(c.entries, i, entry{p, l}), false
	})
}

// drop takes out what the replica told.
func (b *board) drop(replica string) {
	i, ok := slices.BinarySearchFunc(b.papers, replica, comparePaper)
	if !ok {
		return
	}
	r := b.papers[i].report
	b.papers = slices.Delete(b.papers, i, i+1)
	for backend := range r.Backends {
		c := b.backends[backend]
		i, _ := slices.BinarySearchFunc(c.entries, replica, compareEntry)
		c.entries, c.summed = slices.Delete(c.entries, i, i+1), false
	}
}

func comparePaper(p *paper, replica string) int { return strings.Compare(p.replica, replica) }

func compareEntry(e entry, replica string) int { return strings.Compare(e.paper.replica, replica) }

// others returns the reports but the replica's that were told since, in the order of
// their names.
func (b *board) others(replica string, since time.Duration) []*paper {
	list := make([]*paper, 0, len(b.papers))
	for _, p := range b.papers {
		if p.replica != replica && p.at >= since {
			list = append(list, p)
		}
	}
	return list
}

// total is what others run together, by backend: what peers.Remote tells a router. It
// is written into all, which belongs to the replica.
func (b *board) total(all map[string]router.Load, replica string, since time.Duration) map[string]router.Load {
	stale := slices.ContainsFunc(b.papers, func(p *paper) bool { return p.at < since })
	clear(all)
	for _, c := range b.backends {
		if l, ok := c.total(replica, since, stale); ok {
			all[c.name] = l
		}
	}
	return all
}

// total is false where nobody else says anything of the backend.
func (c *column) total(replica string, since time.Duration, stale bool) (router.Load, bool) {
	_, own := slices.BinarySearchFunc(c.entries, replica, compareEntry)
	if !own && !stale {
		if !c.summed {
			c.sum, c.summed = c.add(func(*paper) bool { return true }), true
		}
		return c.sum, len(c.entries) > 0
	}
	counts := func(p *paper) bool { return p.replica != replica && p.at >= since }
	return c.add(counts), slices.ContainsFunc(c.entries, func(e entry) bool { return counts(e.paper) })
}

func (c *column) add(counts func(*paper) bool) (sum router.Load) {
	for i := range c.entries {
		if counts(c.entries[i].paper) {
			sum = peers.Add(sum, c.entries[i].load)
		}
	}
	return sum
}
