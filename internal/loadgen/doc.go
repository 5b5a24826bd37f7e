// Package loadgen is a client of an OpenAI-compatible URL that streams answers
// and says what it saw, as an application sees it: whether it was served, when
// the first token came, and how many tokens per second followed.
//
// It counts one token per content event, which is exact for engines that send
// each token on its own, as the simulated one does.
package loadgen
