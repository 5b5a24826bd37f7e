package arena

import (
	"github.com/pacer-dev/pacer/internal/presets"
	"github.com/pacer-dev/pacer/sim"
)

// Published is the step law of a published curve.
func Published(p presets.Preset) sim.Model {
	m := sim.Model{D: p.SecondsPerPromptToken}
	for _, point := range p.Points {
		m.Table = append(m.Table, sim.Point{N: point.N, TPS: point.TPS})
	}
	return m
}
