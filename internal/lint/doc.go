// Package lint holds the rules of the house as tests: which package may import
// which, what the pure core may import, and that every package says what it is.
package lint
