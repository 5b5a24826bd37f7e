package endpoint

import "testing"

func TestAsked(t *testing.T) {
	for path, want := range map[string]struct{ path, model string }{
		"/v1beta/models/gemini-2.5-pro:generateContent":                              {"/models/{model}:generateContent", "gemini-2.5-pro"},
		"/v1/models/meta-llama/Llama-3.1-8B:streamGenerateContent":                   {"/models/{model}:streamGenerateContent", "meta-llama/Llama-3.1-8B"},
		"/models/a:b:countTokens/":                                                   {"/models/{model}:countTokens", "a:b"},
		"/v1/projects/p/locations/l/publishers/google/models/gemini:generateContent": {"/models/{model}:generateContent", "gemini"},
		"/v1beta1/publishers/meta/models/llama:generateContent":                      {"/models/{model}:generateContent", "meta/llama"},
		"/v1beta/models/gemini:predict":                                              {},
		"/v1beta/models/gemini":                                                      {},
		"/v1beta/models/:generateContent":                                            {},
		"/v1beta/generateContent":                                                    {},
		"/v1beta/models/a\nb:generateContent":                                        {},
	} {
		e, model := Asked(path)
		got := ""
		if e != nil {
			got = e.Path
		}
		if got != want.path || model != want.model {
			t.Errorf("%q asks %q of %q, want %q of %q", path, got, model, want.path, want.model)
		}
	}
}

func TestInGoogle(t *testing.T) {
	for path, want := range map[string]bool{
		"/v1beta/models": true, "/v1beta1/x": true, "/v1/projects/p": true, "/v1/models/a:generateContent": true,
		"/v1/models/a": false, "/v1/chat/completions": false, "/v1betamax": false, "/": false,
	} {
		if got := InGoogle(path); got != want {
			t.Errorf("InGoogle(%q) = %v, want %v", path, got, want)
		}
	}
	if e, model := Named("m:generateContent/models/{model}:generateContent"); e != nil {
		t.Errorf("Azure's clients find %s for %q", e.Path, model)
	}
}
