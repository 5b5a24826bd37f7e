// Package tokens counts the tokens of a text as a common tokenizer would, for
// answers and prompts whose backend tells no usage.
//
// It is an estimate: the backend's own tokenizer may differ by a few per cent
// for English and code, and by half for other scripts. It feeds the curve of those
// backends alone whose streams never tell a usage.
//
// The tokenizer's tables (o200k_base) are part of the program and are loaded by
// the first count: it takes up to a second and 23 MiB that stay. A count of
// MaxText bytes takes milliseconds. So neither belongs where a client waits.
package tokens
