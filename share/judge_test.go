package share

import (
	"errors"
	"testing"
	"time"
)

var errDown = errors.New("down")

func TestVerdict(t *testing.T) {
	type step struct {
		at     time.Duration
		others int
		err    error
		want   State
	}
	shared := func(replicas int) State { return State{Replicas: replicas} }
	alone := func(replicas int) State { return State{Replicas: replicas, Alone: true} }
	const ms, s = time.Millisecond, time.Second
	for name, steps := range map[string][]step{
		"no redis at the start: as many as configured": {
			{0, 0, errDown, alone(4)},
			{200 * ms, 0, errDown, alone(4)},
		},
		"redis tells how many there are": {
			{0, 0, nil, shared(1)},
			{200 * ms, 1, nil, shared(2)},
			{400 * ms, 2, nil, shared(3)},
			{600 * ms, 1, nil, shared(2)}, // one died
		},
		"a short silence means nothing, a long one is a loss": {
			{0, 2, nil, shared(3)},
			{500 * ms, 0, errDown, shared(3)},
			{s, 0, errDown, shared(3)},
			{1200 * ms, 0, errDown, alone(3)},
			{1400 * ms, 0, errDown, alone(3)},
			{1600 * ms, 2, nil, shared(3)},
		},
		"the first to come back to an emptied redis does not believe that it is by itself": {
			{0, 2, nil, shared(3)},
			{2 * s, 0, errDown, alone(3)},
			{3 * s, 0, nil, alone(3)},
			{5 * s, 1, nil, alone(3)},
			{6 * s, 2, nil, shared(3)},
			{7 * s, 1, nil, shared(2)},
		},
		"… but not for ever": {
			{0, 1, nil, shared(2)},
			{2 * s, 0, errDown, alone(2)},
			{3 * s, 0, nil, alone(2)},
			{16 * s, 0, nil, alone(2)},
			{16*s + 1, 0, nil, shared(1)},
		},
		"a failure within the grace starts it anew": {
			{0, 1, nil, shared(2)},
			{2 * s, 0, errDown, alone(2)},
			{3 * s, 0, nil, alone(2)},
			{12 * s, 0, errDown, alone(2)},
			{17 * s, 0, nil, alone(2)},
			{30*s + 1, 0, nil, shared(1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewJudge(4, s)
			start := time.Unix(1000, 0)
			for i, st := range steps {
				if got := v.See(start.Add(st.at), st.others, st.err); got != st.want || v.State() != st.want {
					t.Fatalf("step %d at %v: %v of %d, want %v of %d", i, st.at, got, got.Replicas, st.want, st.want.Replicas)
				}
			}
		})
	}
}
