// Package usage knows who used what, and what it cost: one Record for each
// settled request, summed up by key, team, route, backend, model and tags in
// buckets of an hour, and the budgets of keys and teams.
//
// A Book holds what passed through this replica. What the replicas share is
// carried by a loop outside (redisusage): it takes what is pending under a
// number (Out), adds it to the sums of all, and says that it has arrived
// (Arrived). A budget is shared by allowances: what is left of it is divided
// among the replicas, so that no two of them spend the same dollar. A request is
// let in where as much is left of the allowance here as it may cost, which nobody else
// may spend while it runs (Reservation). It is not cut when nothing is left.
//
// Units: Money is billionths of a dollar, so sums of it are exact; prices are USD
// per million tokens; an hour is counted from 1970 in UTC.
//
// Everything that clients can make grow is bounded: beyond the bound a cell keeps
// its key and team, and the rest of its names become Other. No sum is ever lost.
//
// Nothing here reads a clock, starts a goroutine or does I/O: callers pass now.
package usage
