// Package routers puts vLLM's and SGLang's own routers, with their cache-aware policies
// and from PyPI, in front of the same simulated engines as the built program, and plays
// one load of conversations to each: how much of the prompts came from the engines'
// prefix caches, how soon the first tokens came, and how many streams kept the floor.
//
// It takes 20 minutes and installs 100 MB, so it runs when it is told where to keep
// them:
//
//	make routers
package routers
