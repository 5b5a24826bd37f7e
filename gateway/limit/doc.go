// Package limit holds a key to what its owner may use: requests per minute,
// tokens per minute, and requests at once.
//
// Both rates are buckets that hold a minute's worth: a key that was idle may
// use a whole minute at once. A request is charged its estimated tokens when
// it starts and settled with the real ones when it ends. The counts are those
// of this replica alone.
//
// Nothing here reads a clock: callers pass now.
package limit
