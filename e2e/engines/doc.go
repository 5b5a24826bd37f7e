// Package engines puts real inference engines behind the built program:
// llama.cpp's own server and vLLM's build for CPUs, with small models whose
// weights are random and made here. It holds what Pacer learned against what the
// clients saw in the same run and against a direct sweep, and looks whether
// floors hold, cancelled requests end and killed engines come back.
//
// The installations take 7 GB and the runs some minutes of CPU, so they need
//
//	make engines
//
// A package that cannot be had skips its engine, with the reason.
package engines
