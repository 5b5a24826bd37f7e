// Package prefix knows which prompts the caches of targets begin to know.
//
// A prompt is a Chain: its canonical bytes, cut into blocks, each with a hash that
// stands for it and for all before it. No text is kept, and no tokenizer asked. An
// Index remembers for each target which blocks were sent there, and how much was
// computed there since, for that is how a cache forgets. What became of a prediction
// teaches how old a block may be and still be there, and whether that saves time: a
// prediction that is worth nothing fades.
//
// Units: lengths of chains are bytes, as far as they are not called tokens; tokens
// are those of the target. Nothing here reads a clock, starts a goroutine or does
// I/O. An Index is safe for concurrent use, a Chain is not.
package prefix
