package sim

import "testing"

// With a shared budget of 8 tokens a step, three sequences that decode leave 5 for
// a prompt of 12: it takes three steps, of 5, 5 and 2.
func TestSharedBudget(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{A: 0.010}, PrefillBatch: 8, SharedBudget: true, Noise: -1})
	for range 3 {
		submit(t, e, 1, 100, nil)
	}
	var got []int
	drive(e, at(0), at(0.5), func(s Step) {
		if s.Work.Decoding == 3 && len(got) == 0 && e.Waiting() == 0 && e.Running() == 3 {
			submit(t, e, 12, 2, "long")
			got = append(got, 0)
			return
		}
		if s.Work.Prefill > 0 && s.Work.Decoding == 3 {
			got = append(got, s.Work.Prefill)
		}
	})
	if len(got) != 4 || got[1] != 5 || got[2] != 5 || got[3] != 2 {
		t.Errorf("prefilled %v tokens beside three that decode, want 5, 5 and 2", got)
	}
}

// A draft that nobody takes beside others makes one token a step, and four alone.
func TestAcceptanceByLoad(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{A: 0.010}, Draft: 3, Noise: -1, AcceptanceAt: func(n int) float64 {
		if n > 1 {
			return 0
		}
		return 1
	}})
	submit(t, e, 1, 401, "alone at last")
	submit(t, e, 1, 11, "beside")
	tokens := map[int]map[int]int{}
	drive(e, at(0), at(5), func(s Step) {
		for _, o := range s.Outputs {
			if !o.First && !o.Last {
				if tokens[s.Work.Decoding] == nil {
					tokens[s.Work.Decoding] = map[int]int{}
				}
				tokens[s.Work.Decoding][o.Tokens]++
			}
		}
	})
	if len(tokens[2]) != 1 || tokens[2][1] == 0 || len(tokens[1]) != 1 || tokens[1][4] == 0 {
		t.Errorf("tokens a step, by sequences: %v; want 1 of two and 4 of one", tokens)
	}
}

// A cache of 40 tokens cannot hold two sequences of 10 + 20: the newer one is put
// back, prefills again what it had, and both end with every token, sent once.
func TestPreemption(t *testing.T) {
	e := newEngine(t, EngineOptions{Model: Model{A: 0.010}, KVTokens: 40, Preempt: true, Noise: -1})
	submit(t, e, 10, 20, "older")
	submit(t, e, 10, 20, "newer")
	tokens, firsts, order := map[any]int{}, map[any]int{}, []any{}
	prefilled := 0
	drive(e, at(0), at(5), func(s Step) {
		prefilled += s.Work.Prefill
		for _, o := range s.Outputs {
			tokens[o.Sequence.Tag] += o.Tokens
			if o.First {
				firsts[o.Sequence.Tag]++
			}
			if o.Last {
				order = append(order, o.Sequence.Tag)
			}
		}
	})
	if tokens["older"] != 20 || tokens["newer"] != 20 || firsts["newer"] != 1 || firsts["older"] != 1 {
		t.Errorf("tokens %v, first ones %v, want 20 and 1 of each", tokens, firsts)
	}
	if len(order) != 2 || order[0] != "older" {
		t.Errorf("ended in the order %v, want the older first", order)
	}
	if prefilled <= 20 {
		t.Errorf("%d tokens were prefilled, want more than the prompts: what was lost is read again", prefilled)
	}
}
