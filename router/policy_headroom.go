package router

// byHeadroom takes the feasible target with the largest bound over need, those
// last on which a higher floor would lose a place, and before these those whose engine
// has no slot free. Beside many replicas it chooses among
// some of them, see rush.
//
// An unknown target goes first while slow start has room on it, the emptiest
// before the others: it costs little while nothing runs there, and the next
// spike finds it learned.
type byHeadroom struct{}

func (byHeadroom) Pick(c Choice) int {
	feasible := c.ask.rankAll()
	if feasible > 1 {
		c.ask.spare()
		c.soon()
	}
	if feasible > drawn && c.router.peers.many() && !c.ask.preview {
		return c.bestOfSome(feasible)
	}
	return c.best()
}
