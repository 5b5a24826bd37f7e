// Package benchfile reads TPS-vs-concurrency curves from the files that
// benchmarks leave behind, so that a gateway starts warm: what pacer bench and
// pacer curves write (CSV and JSON), the answer of /api/v1/profiles, the
// results of vllm bench serve (and of SGLang, which writes the same fields),
// and the exports of AIPerf and GenAI-Perf. The format is told by content,
// never by the name.
//
// Speed is decode speed: tokens/s for ONE of n streams, after its first token.
// Most tools state the mean over requests, which is not quite tokens over
// stream-seconds where answers differ in length: a published AIPerf run says
// 85.7 where that is 83.5. n is the concurrency that the tool kept up, its
// requests that wait for a first token included. Both are good enough for a
// belief that evidence replaces, and that is what a file is read for.
//
// What could not be used is said with its line, as a Note if there is still a
// curve, as an *Error if not. Nothing here does I/O but Load.
package benchfile
