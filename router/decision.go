package router

import "time"

// Decision is the answer of Place: exactly one of Lease, Ticket and Refusal is
// set.
type Decision struct {
	Lease   *Lease
	Ticket  *Ticket
	Refusal *Refusal

	Chosen  Candidate // with a Lease
	Policy  string    // the word of the policy, or best_effort
	Spilled string    // the route it was spilled to, "" if none
	Waited  time.Duration
	Back    bool // it came back as it was told
}

// Grant is the decision that a waiting ticket got: a lease, or a refusal when
// waiting became pointless.
type Grant struct {
	Ticket   *Ticket
	Waiter   any
	Decision Decision
}
