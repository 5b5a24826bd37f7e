// Package spelling finds the word that was likely meant for one that is not
// known: a field of the configuration, a command, a route, a backend.
//
// It compares letters, nothing else: it knows no language and no synonyms. What
// it returns is always one of the known words, so a message that ends with it
// repeats nothing of the word itself.
package spelling
