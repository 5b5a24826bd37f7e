package presets

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Point is one published level: N users at TPS tokens/s each.
type Point struct {
	N   int     `json:"n"`
	TPS float64 `json:"tps"`
}

// Preset is one published curve.
type Preset struct {
	Name                  string  `json:"name"` // model/gpu/engine
	Model                 string  `json:"model"`
	GPU                   string  `json:"gpu"`
	Engine                string  `json:"engine"`
	Points                []Point `json:"points"`                   // by N; those with a TTFT over 5 s left out
	SecondsPerPromptToken float64 `json:"seconds_per_prompt_token"` // TTFT at the lowest level over its prompt length
}

// Lookup finds a preset by name; the engine may be left out (vllm, else
// sglang, else trtllm), the gpu too (then the first by name that the model was
// measured on).
func Lookup(name string) (Preset, bool) {
	parts := strings.Split(name, "/")
	if len(parts) > 3 || slices.Contains(parts, "") {
		return Preset{}, false
	}
	var fit []Preset
	for _, p := range all() {
		if slices.Equal(parts, []string{p.Model, p.GPU, p.Engine}[:len(parts)]) {
			fit = append(fit, p)
		}
	}
	if len(fit) == 0 {
		return Preset{}, false
	}
	return slices.MinFunc(fit, preferred).clone(), true
}

// List returns all presets by name.
func List() []Preset {
	list := make([]Preset, 0, len(all()))
	for _, p := range all() {
		list = append(list, p.clone())
	}
	return list
}

// all is parsed at the first use: most runs of the program need no preset.
var all = sync.OnceValue(func() []Preset {
	list, err := parse(curvesCSV)
	if err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return list
})

// engines in the order in which a name without one takes them.
var engines = []string{"vllm", "sglang", "trtllm"}

// preferred compares two candidates for one incomplete name.
func preferred(a, b Preset) int {
	return cmp.Or(
		cmp.Compare(a.GPU, b.GPU),
		cmp.Compare(slices.Index(engines, a.Engine), slices.Index(engines, b.Engine)),
	)
}

// clone keeps a caller that edits its points from editing everybody's.
func (p Preset) clone() Preset {
	p.Points = slices.Clone(p.Points)
	return p
}
