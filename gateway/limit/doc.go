// Package limit holds a key to what its owner may use: requests per minute,
// tokens per minute, and requests at once.
//
// Both rates are buckets that hold a minute's worth: a key that was idle may
// use a whole minute at once. A request takes its place when its head is there,
// is charged its estimated tokens when its body is, and settled with the real
// ones when it ends. At once it counts as many times as it has sequences (n,
// best_of, prompts of an array), since an engine runs each of them.
//
// A Limiter decides alone and at once, by what it knows. Where replicas share
// the limits, something outside tells the others what was used here (Report)
// and brings back what all have used (Answer). Between two answers each
// replica knows only its own use, so together they may go over a limit by what
// they let pass in that time; it is owed, and later requests pay for it. When
// nobody knows what the others use, each is held to a part (Alone).
//
// Nothing here reads a clock: callers pass now.
package limit
