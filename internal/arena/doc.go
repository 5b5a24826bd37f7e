// Package arena plays the traffic of a whole fleet against a policy, in
// virtual time: discrete events over the engines of sim, with the real router
// and the real estimator of profiles in between. It holds no copy of their
// logic. Tests compare policies with it, and pacer plan answers with it.
//
// A Scenario is what is played: backends with the truth about them, routes,
// arrivals, faults and a policy. Run returns what users and backends got.
// Each simulated gateway has its own router and its own book of profiles;
// gateways share loads and sums as through a Redis, with its delay.
//
// Times are since the start of the scenario; speed is tokens/s of one stream.
// The same scenario gives the same result, but for the wall time it took.
// Runs share nothing and may go on side by side.
package arena
