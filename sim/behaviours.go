package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Named is a behaviour or a fault that can be asked for.
type Named struct{ Name, Doc string }

// quirks are the habits of real servers that a Server was asked to have.
type quirks struct {
	closesAfterStream bool
	headersAfterQueue bool
	cutWithoutDone    bool
	roleWithFirst     bool
	roleAtOnce        bool
	unboundedQueue    bool
	shortQueue        bool
	reasoning         bool
	follows           bool
	twoWords          bool
	ping              bool
	loading           bool
	prefillStalls     bool
	badJSONIs500      bool
	wrongUsage        bool
	anyModel          bool
	metrics           string  // whose page of metrics it has; "" = vLLM's
	curve             []Point // instead of the model's; nil = the model's
	noUsage           bool
	noCached          bool
	wrongCached       bool
	usageOnFinish     bool
	usageNull         bool
	repeatedUsage     bool
}

// behaviour is one habit.
type behaviour struct {
	Named
	set func(*quirks)
}

// behaviours is every habit there is; one line makes a new one known.
var behaviours = []behaviour{
	{Named{"429-on-full-queue", fmt.Sprintf("answer 429 when more than %d sequences would wait", shortQueueLimit)}, func(q *quirks) { q.shortQueue = true }},
	{Named{"500-on-bad-json", "answer a body that is no JSON with 500 (llama.cpp)"}, func(q *quirks) { q.badJSONIs500 = true }},
	{Named{"cliff-curve", "a measured curve that falls by three quarters from one stream to two"}, func(q *quirks) { q.curve = cliffCurve }},
	{Named{"closes-after-stream", "close the connection after every streamed answer, though the headers promise to keep it (llama.cpp)"}, func(q *quirks) { q.closesAfterStream = true }},
	{Named{"cut-without-done", "end every stream cleanly after half its tokens: no finish_reason, no usage, no [DONE]"}, func(q *quirks) { q.cutWithoutDone = true }},
	{Named{"headers-after-queue", "send the headers of a stream when it gets a slot, not when it arrives (llama.cpp)"}, func(q *quirks) { q.headersAfterQueue = true }},
	{Named{"loading-503", fmt.Sprintf("answer everything with 503 \"Loading model\" for the first %v (llama.cpp)", loadingTime)}, func(q *quirks) { q.loading = true }},
	{Named{"metrics-as-llamacpp", "export the load as llama.cpp does; without it, as vLLM does"}, func(q *quirks) { q.metrics = "llamacpp" }},
	{Named{"metrics-as-sglang", fmt.Sprintf("export the load as SGLang does: by each rank of the batch, with every %dth step", sglangLogEvery)}, func(q *quirks) { q.metrics = "sglang" }},
	{Named{"metrics-as-tgi", "export the load as TGI does"}, func(q *quirks) { q.metrics = "tgi" }},
	{Named{"n2-usage-wrong", "usage counts the tokens of one choice only, whatever n is (llama.cpp)"}, func(q *quirks) { q.wrongUsage = true }},
	{Named{"no-cached-tokens", "tell nothing of the prefix cache in usage (vLLM without --enable-prompt-tokens-details)"}, func(q *quirks) { q.noCached = true }},
	{Named{"no-usage", "tell no usage in a stream, whatever is asked for"}, func(q *quirks) { q.noUsage = true }},
	{Named{"ping-comments", fmt.Sprintf("a comment line before the first token and after every %d-th (llama.cpp, TGI, hosted APIs)", pingEvery)}, func(q *quirks) { q.ping = true }},
	{Named{"prefill-stalls-decode", "prefill a prompt in one step, for which all others wait"}, func(q *quirks) { q.prefillStalls = true }},
	{Named{"reasoning", "the first half of every chat answer is reasoning, as reasoning_content"}, func(q *quirks) { q.reasoning = true }},
	{Named{"repeated-usage", "tell each count of continuous usage twice, and the usage at the end twice"}, func(q *quirks) { q.repeatedUsage = true }},
	{Named{"role-and-first-token-in-one-write", "send the role chunk in one write with the first token (llama.cpp)"}, func(q *quirks) { q.roleWithFirst = true }},
	{Named{"role-at-once", "send the role chunk with the headers, long before the first token"}, func(q *quirks) { q.roleAtOnce = true }},
	{Named{"step-curve", "a measured curve in steps, on which four streams are faster each than three"}, func(q *quirks) { q.curve = stepCurve }},
	{Named{"text-of-prompt", "say words that follow from all the text before them, not the same to everybody"}, func(q *quirks) { q.follows = true }},
	{Named{"two-words", "a tokenizer with one token for two words, where others have one for each: the same text is half as many tokens"}, func(q *quirks) { q.twoWords = true }},
	{Named{"unbounded-queue", fmt.Sprintf("never refuse; without it more than %d waiting sequences are answered 503", queueLimit)}, func(q *quirks) { q.unboundedQueue = true }},
	{Named{"unknown-model-200", "answer whatever model is named, as the model that is loaded (llama.cpp)"}, func(q *quirks) { q.anyModel = true }},
	{Named{"usage-null", "write \"usage\":null in every chunk of a stream that is asked for its usage and has none yet (OpenAI, Azure, DeepSeek, early vLLM)"}, func(q *quirks) { q.usageNull = true }},
	{Named{"usage-on-finish", "tell the usage in the chunk that says why the answer ended, not in one of its own (DeepSeek)"}, func(q *quirks) { q.usageOnFinish = true }},
	{Named{"wrong-cached-tokens", "say in usage that all of each prompt was cached, whatever was"}, func(q *quirks) { q.wrongCached = true }},
}

// The curves of a llama.cpp server as measured on two CPU cores, with two
// models.
var (
	stepCurve  = []Point{{1, 835}, {2, 420}, {3, 296}, {4, 387}, {5, 264}, {6, 201}, {7, 158}, {8, 179}}
	cliffCurve = []Point{{1, 485}, {2, 133}, {3, 109}, {4, 85}, {6, 62}, {8, 62}}
)

const (
	// shortQueueLimit is how many sequences wait at an engine that answers
	// 429-on-full-queue.
	shortQueueLimit = 4

	// pingEvery is how many tokens lie between two comments.
	pingEvery = 16

	// loadingTime is how long loading-503 takes.
	loadingTime = 5 * time.Second
)

// Behaviours lists what Options.Behaviours may name, by name.
func Behaviours() []Named {
	var list []Named
	for _, b := range behaviours {
		list = append(list, b.Named)
	}
	return list
}

func parseBehaviours(names []string) (quirks, error) {
	var q quirks
	for _, name := range names {
		i := slices.IndexFunc(behaviours, func(b behaviour) bool { return b.Name == name })
		if i < 0 {
			return quirks{}, fmt.Errorf("sim: no behaviour %q; there are %s", name, known(Behaviours()))
		}
		behaviours[i].set(&q)
	}
	if q.roleAtOnce && q.roleWithFirst {
		return quirks{}, errors.New("sim: role-at-once and role-and-first-token-in-one-write exclude each other")
	}
	if q.shortQueue && q.unboundedQueue {
		return quirks{}, errors.New("sim: 429-on-full-queue and unbounded-queue exclude each other")
	}
	return q, nil
}

func known(list []Named) string {
	var names []string
	for _, n := range list {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
