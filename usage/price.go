package usage

import "cmp"

// Price is in USD per million tokens. The zero value of Cached and AudioInput is
// the price of Input, that of Reasoning and AudioOutput the price of Output: who
// lists no price of their own for them asks for the same. A zero Price is none.
type Price struct {
	Input, Output           float64
	Cached, Reasoning       float64
	AudioInput, AudioOutput float64
}

// Tokens are those of one request. Cached and AudioInput are parts of Input, and of
// what is cached none is taken for sound; Reasoning and AudioOutput are of Output.
type Tokens struct {
	Input, Cached, Output, Reasoning int64
	AudioInput, AudioOutput          int64
}

// Of returns what t costs.
func (p Price) Of(t Tokens) Money {
	cached, reasoning := min(t.Cached, t.Input), min(t.Reasoning, t.Output)
	audioIn, audioOut := min(t.AudioInput, t.Input-cached), min(t.AudioOutput, t.Output-reasoning)
	return Dollars((float64(t.Input-cached-audioIn)*p.Input + float64(cached)*cmp.Or(p.Cached, p.Input) + float64(audioIn)*cmp.Or(p.AudioInput, p.Input) +
		float64(t.Output-reasoning-audioOut)*p.Output + float64(reasoning)*cmp.Or(p.Reasoning, p.Output) + float64(audioOut)*cmp.Or(p.AudioOutput, p.Output)) / 1e6)
}
