package sim

import "strings"

// begun is the text of an answer that another engine has given the beginning of: that
// of the final message, where the request says that it is to be continued.
func (q *request) begun() (text string, messages []message, err error) {
	if !q.ContinueFinalMessage {
		return "", q.Messages, nil
	}
	last := len(q.Messages) - 1
	switch {
	case q.AddGenerationPrompt == nil || *q.AddGenerationPrompt:
		return "", nil, badRequest("continue_final_message", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
	case q.Messages[last].Role != "assistant":
		return "", nil, badRequest("continue_final_message", "The last message is not the assistant's.")
	}
	return q.Messages[last].Content.text, q.Messages[:last], nil
}

// wordsIn is how many words of an answer text has: each begins with a blank, or is a
// mark.
func wordsIn(text string) (n int) {
	for i := range len(text) {
		if strings.IndexByte(" .,;:", text[i]) >= 0 {
			n++
		}
	}
	return n
}

// goesOn is w for an answer that begins behind its first said words.
func (w *wire) goesOn(said int) *wire {
	if said == 0 {
		return w
	}
	v := *w
	v.piece = func(choice, t, _ int) string { return word(choice, said+t) }
	return &v
}

// twoWords is w for an answer each token of which is two words.
func (w *wire) twoWords() *wire {
	v := *w
	v.piece = func(choice, t, _ int) string { return word(choice, 2*t) + word(choice, 2*t+1) }
	return &v
}

// follows is w for an answer each word of which follows from all the text before it,
// as prompt is the first of. Who goes on with a part of it so says the rest.
func (w *wire) follows(prompt string) *wire {
	v := *w
	var said [][]byte // by choice: the words, as places in words
	var states []uint64
	v.piece = func(choice, t, _ int) string {
		for len(said) <= choice {
			said, states = append(said, nil), append(states, fingerprint(uint64(len(said)), prompt))
		}
		for len(said[choice]) <= t {
			state := states[choice]
			i := (state ^ state>>29) * 0x9e3779b97f4a7c15 >> 40 % uint64(len(words))
			said[choice] = append(said[choice], byte(i))
			states[choice] = fingerprint(state, words[i])
		}
		return words[said[choice][t]]
	}
	return &v
}

// fingerprint is that of all text before and of text: it does not matter where one
// ends and the other begins.
func fingerprint(before uint64, text string) uint64 {
	for i := range len(text) {
		before = (before ^ uint64(text[i])) * 0x100000001b3
	}
	return before
}
