// Package redisstore shares curves through Redis (6.2 or later) or Valkey:
// single, Sentinel or Cluster. It carries sums and knows nothing of what they
// mean, save which are forgotten together.
//
// For each target there is a hash prefix:{backend}:sums:model with one field
// per sum, and the fields @v (version of this layout), @birth (a random name,
// given when the hash is made), @updated (microseconds), @seed, and @slow (when
// the slow copy faded last, in milliseconds of the server's clock). For each
// backend and replica there is a hash prefix:{backend}:seq:replica that holds,
// by model, the number of the last delta added; of separate models they are
// prefix:{backend}:separate:model and :separate-seq:replica. Both are written by one
// script, so a delta counts once however often it is sent. Every key has a
// time to live.
//
// A server that lost its data (restarted without a dump, flushed, evicted)
// shows by another @birth. The first replica to see it puts back what it
// loaded last, and marks it with @seed; the others then leave it at that.
//
// Sums of our version that fail profiles.Sums.Check were written by nobody who
// measured. Whoever reads them drops the hash, and what follows is as if the
// server had lost it. A hash of another version, or without one, and what is no
// hash, may be somebody's: they are left alone.
package redisstore
