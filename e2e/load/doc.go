// Package load puts the public load tools of the field, guidellm and aiperf,
// unchanged, in front of the built program and a simulated engine, and compares
// the speed per user that they report with Pacer's own. Beside them and vllm bench
// serve, pacer bench has to measure the same, figure by figure.
//
// Both installations take 7 GB (guidellm needs torch), so its test runs when
// it is told where to keep them:
//
//	make loadtools
package load
