// Package redisusage shares usage and budgets through Redis (6.2 or later) or
// Valkey: single, Sentinel or Cluster.
//
// Within 20 ms of what it spends, and at least five times a second, each replica
// tells what it has spent of each budget and what its requests may cost, and is told what
// all have spent and which part of the rest is its own until the next time (lua/spend.lua). Once a second it adds its cells of usage to the hours of
// all (lua/add.lua). Both count once by replica and number, however often they are
// sent. No request waits for any of it.
//
// Redis lost: each replica goes on with its part of what was left. An emptied
// Redis begins with the largest total that a replica knows, and each replica adds
// the cells again that it had told before.
//
// Redis holds the configured names of keys and teams, never a key.
package redisusage
