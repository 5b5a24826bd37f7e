// Package presets holds published TPS-vs-concurrency curves, embedded, by the
// names that --preset and prior: use: model[/gpu[/engine]].
package presets

// Point is one published level.
type Point struct {
	N   int
	TPS float64
}

// Preset is one published curve.
type Preset struct {
	Name                  string // model/gpu/engine
	Model, GPU, Engine    string
	Points                []Point // by N; those with a TTFT over 5 s left out
	SecondsPerPromptToken float64 // TTFT at the lowest level over its prompt length
}

// Lookup finds a preset by name; the engine may be left out (vllm, else
// sglang, else trtllm), the gpu too if there is one for the model.
func Lookup(name string) (Preset, bool) { panic("unwritten") }

// List returns all presets by name.
func List() []Preset { panic("unwritten") }
