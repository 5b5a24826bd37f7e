package benchfile

import "math"

// keptUp is the part of the concurrency that has to be running on average, or
// the run says nothing about that level: it ramped up and down, or a request
// rate held it back.
const keptUp = 0.5

// vllm reads one result of vllm bench serve --save-result, or a line of
// --append-result; SGLang's bench_serving has the same fields. TPOT is (latency
// − TTFT)/(tokens − 1), meant over requests: decode time alone.
func (f *file) vllm(d document, line int) error {
	f.format("vllm bench serve")
	if err := f.model(line, d.Get("model_id").String()); err != nil {
		return err
	}
	n, ok := d.number("max_concurrency")
	if !ok {
		f.skip(line, "a result without max_concurrency left out: it ran at a request rate, so nobody knows at which n; run with --max-concurrency")
		return nil
	}
	if completed, ok := d.number("completed"); ok && completed == 0 {
		f.skip(line, "n = %v left out: no request was completed", n)
		return nil
	}
	tpot, ok := d.number("mean_tpot_ms")
	if !ok {
		tpot, ok = d.number("median_tpot_ms")
	}
	if !ok || tpot == 0 {
		f.skip(line, "n = %v left out: no mean_tpot_ms above 0; the answers have to be streamed, and tpot has to be among --percentile-metrics", n)
		return nil
	}
	ttft, ok := d.number("mean_ttft_ms")
	if !ok {
		ttft, _ = d.number("median_ttft_ms")
	}
	if running := running(d, ttft, tpot); running < keptUp*n {
		f.skip(line, "n = %v left out: only %.1f requests were running on average; send more requests, without a request rate", n, running)
		return nil
	}
	return f.add(line, n, 1000/tpot, ttft/1000)
}

// running returns how many requests were running on average, by Little's law;
// +Inf where the result does not say.
func running(d document, ttftMS, tpotMS float64) float64 {
	rate, hasRate := d.number("request_throughput")
	completed, hasCompleted := d.number("completed")
	tokens, hasTokens := d.number("total_output_tokens")
	if !hasRate || !hasCompleted || !hasTokens || !(rate > 0) || !(completed > 0) {
		return math.Inf(1)
	}
	return rate * (ttftMS + tpotMS*max(tokens/completed-1, 0)) / 1000
}
