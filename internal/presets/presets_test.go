package presets

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"llama-3.1-70b/h200/vllm": "llama-3.1-70b/h200/vllm",
		"llama-3.1-70b/h200":      "llama-3.1-70b/h200/vllm",  // vllm before trtllm
		"glm-5/h200":              "glm-5/h200/sglang",        // the only one
		"deepseek-r1/h200":        "deepseek-r1/h200/sglang",  // sglang before trtllm
		"deepseek-r1/b200":        "deepseek-r1/b200/sglang",  // the other one is the 8192/1024 curve
		"deepseek-v3/h200":        "deepseek-v3/h200/trtllm",  // the other one is a copy
		"llama-3.1-70b":           "llama-3.1-70b/b200/vllm",  // the first gpu, then the engine
		"llama-3.1-8b":            "llama-3.1-8b/h100/trtllm", // published as …-Instruct
		"qwen3-235b-a22b-fp8":     "qwen3-235b-a22b-fp8/h100/trtllm",

		"deepseek-r1/gb200":          "", // starts at 1024 users
		"deepseek-r1/b200/trtllm":    "",
		"deepseek-v3/h200/sglang":    "",
		"llama-3.1-70b/h200/sglang":  "",
		"meta-llama/Llama-3.1-70B":   "",
		"llama":                      "",
		"":                           "",
		"llama-3.1-70b/":             "",
		"llama-3.1-70b/h200/vllm/":   "",
		"llama-3.1-70b/h200_sxm":     "",
		"llama-3.1-8b-instruct/h100": "",
	} {
		p, ok := Lookup(name)
		if p.Name != want || ok != (want != "") {
			t.Errorf("Lookup(%q) = %q, %t, want %q", name, p.Name, ok, want)
		}
	}
}

func TestValuesAreThePublishedOnes(t *testing.T) {
	p, ok := Lookup("llama-3.1-70b/h200/vllm")
	if !ok {
		t.Fatal("preset is missing")
	}
	want := Preset{
		Name: "llama-3.1-70b/h200/vllm", Model: "llama-3.1-70b", GPU: "h200", Engine: "vllm",
		Points:                []Point{{4, 126.125}, {8, 119.237}, {16, 102.593}, {32, 90.625}, {64, 73.622}},
		SecondsPerPromptToken: p.SecondsPerPromptToken,
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("preset differs (-want +got):\n%s", d)
	}
	if got, want := p.SecondsPerPromptToken, 0.07562/1024; math.Abs(got-want) > 1e-15 {
		t.Errorf("a prompt token takes %v s, want 75.62 ms over 1024 = %v s", got, want)
	}
}

func TestLevelsOfAFullEngineAreLeftOut(t *testing.T) {
	for name, highest := range map[string]int{
		"glm-5/h200":          32,  // 64 had a TTFT of 17 s
		"minimax-m2.5/h100":   32,  // 64: 20 s
		"deepseek-r1/b200":    256, // 512: 159 s
		"minimax-m2.5/b200":   512,
		"llama-3.1-8b/h100":   128,
		"gpt-oss-120b/h100":   64,
		"deepseek-r1/h200":    64,
		"qwen3.5-397b-a17b":   256, // b200
		"deepseek-v3/b300":    128,
		"qwen3-32b/h100/vllm": 128,
	} {
		p, ok := Lookup(name)
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		if got := p.Points[len(p.Points)-1].N; got != highest {
			t.Errorf("%s ends at %d users, want %d", name, got, highest)
		}
	}
}

func TestListIsSortedAndSane(t *testing.T) {
	list := List()
	if got, want := len(list), 34; got != want { // 37 curves, three of them unfit
		t.Errorf("%d presets, want %d", got, want)
	}
	if !slices.IsSortedFunc(list, func(a, b Preset) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the list is not sorted by name")
	}
	for i, p := range list {
		if i > 0 && p.Name == list[i-1].Name {
			t.Errorf("%s is there twice", p.Name)
		}
		if p.Name != strings.ToLower(p.Name) || p.Name != p.Model+"/"+p.GPU+"/"+p.Engine {
			t.Errorf("%q is no proper name", p.Name)
		}
		if got, ok := Lookup(p.Name); !ok || got.Name != p.Name {
			t.Errorf("%s does not find itself", p.Name)
		}
		if len(p.Points) < 4 || p.Points[0].N > highestStart {
			t.Errorf("%s has points %v, want at least 4 from at most %d users up", p.Name, p.Points, highestStart)
		}
		if !slices.IsSortedFunc(p.Points, func(a, b Point) int { return a.N - b.N }) {
			t.Errorf("%s: points are not by level: %v", p.Name, p.Points)
		}
		if d := p.SecondsPerPromptToken; !(d > 1e-6 && d < 1e-3) {
			t.Errorf("%s: a prompt token takes %v s, want microseconds to a millisecond", p.Name, d)
		}
	}
}

func TestCallersCannotEditEachOthersCurves(t *testing.T) {
	p, _ := Lookup("glm-5/h200")
	p.Points[0].TPS = -1
	List()[0].Points[0].TPS = -1
	if again, _ := Lookup("glm-5/h200"); again.Points[0].TPS < 0 || List()[0].Points[0].TPS < 0 {
		t.Error("an edit by one caller is seen by another")
	}
}

func TestParseRefusesDamage(t *testing.T) {
	const head = "curve_id,model,gpu,engine,isl,concurrency,tps_user,ttft_ms\n"
	for _, text := range []string{
		"",
		head + "c1,a/B,h100_sxm,vllm,1024,4,fast,60\n",
		head + "c1,a/B,h100_sxm,vllm,1024,4,50\n",
		head + "c1,a/B,h100_sxm,vllm,1024,,50,60\n",
	} {
		if list, err := parse(text); err == nil {
			t.Errorf("parse(%q) = %v, want an error", text, list)
		}
	}
}
