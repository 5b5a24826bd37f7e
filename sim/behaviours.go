package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
}

// behaviour is one habit.
type behaviour struct {
	Named
	set func(*quirks)
}

// behaviours is every habit there is; one line makes a new one known.
var behaviours = []behaviour{
	{Named{"closes-after-stream", "close the connection after every streamed answer, though the headers promise to keep it (llama.cpp)"}, func(q *quirks) { q.closesAfterStream = true }},
	{Named{"cut-without-done", "end every stream cleanly after half its tokens: no finish_reason, no usage, no [DONE]"}, func(q *quirks) { q.cutWithoutDone = true }},
	{Named{"headers-after-queue", "send the headers of a stream when it gets a slot, not when it arrives (llama.cpp)"}, func(q *quirks) { q.headersAfterQueue = true }},
	{Named{"role-and-first-token-in-one-write", "send the role chunk in one write with the first token (llama.cpp)"}, func(q *quirks) { q.roleWithFirst = true }},
	{Named{"role-at-once", "send the role chunk with the headers, long before the first token"}, func(q *quirks) { q.roleAtOnce = true }},
	{Named{"unbounded-queue", fmt.Sprintf("never refuse; without it more than %d waiting sequences are answered 503", queueLimit)}, func(q *quirks) { q.unboundedQueue = true }},
}

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
	return q, nil
}

func known(list []Named) string {
	var names []string
	for _, n := range list {
		names = append(names, n.Name)
	}
	return strings.Join(names, ", ")
}
