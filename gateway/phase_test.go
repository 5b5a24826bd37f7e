package gateway

import "testing"

// Each step from each phase: done where it is possible, and else a panic that
// changes nothing.
func TestAPhaseOnlyGoesOn(t *testing.T) {
	steps := []struct {
		name string
		do   func(*phase)
		to   phase
		from []phase
	}{
		{"send", (*phase).send, phaseSent, []phase{phaseLeased}},
		{"answer", (*phase).answer, phaseAnswered, []phase{phaseSent}},
		{"judge", (*phase).judge, phaseJudged, []phase{phaseSent, phaseAnswered}},
		{"finish", (*phase).finish, phaseFinished, []phase{phaseLeased, phaseSent, phaseAnswered, phaseJudged}},
		{"end", (*phase).end, phaseEnded, []phase{phaseFinished}},
	}
	for from := phaseLeased; from <= phaseEnded; from++ {
		for _, s := range steps {
			want, possible := from, false
			for _, f := range s.from {
				if f == from {
					want, possible = s.to, true
				}
			}
			got := from
			if bad := panics(func() { s.do(&got) }); bad == possible || got != want {
				t.Errorf("%s from %v: panics %v and is %v then, want %v and %v", s.name, from, bad, got, !possible, want)
			}
		}
	}
}
