// Package presets holds published TPS-vs-concurrency curves, embedded, by the
// names that --preset and prior: use: model[/gpu[/engine]], lower case and
// without vendor, as in llama-3.1-70b/h200/vllm.
//
// A curve here is what somebody measured with fixed lengths in a closed loop;
// it says how one deployment behaved, and is the starting point of a belief or
// the truth of a simulation, never a promise about another machine. Speed is
// tokens/s for one user. Everything is read only and safe for concurrent use.
package presets
