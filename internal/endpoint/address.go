package endpoint

import (
	"strings"
	"unicode"
)

// Address is one path under which clients find an endpoint.
type Address struct {
	Path string // as a client asks for it; {id} stands for one step
	Base string // what it has before the endpoint's own path
}

// bases are what clients' base URLs end in: as OpenAI's, as Azure's, and none,
// which is what many take out of the example of an engine.
var bases = []string{"/v1", "", "/openai/v1"}

// Addresses returns the paths of e, without a slash at their end.
func (e *Endpoint) Addresses() (all []Address) {
	if e.APIs == Google { // Asked knows them
		return nil
	}
	for _, base := range bases {
		if !e.Root || base == "" || base == "/v1" && !strings.HasPrefix(e.Path, "/v2/") {
			all = append(all, Address{Path: base + e.Path, Base: base})
		}
	}
	if e.Socket { // Azure's names its deployment in the query
		all = append(all, Address{Path: "/openai" + e.Path, Base: "/openai"})
	}
	return all
}

// ModelBases are the bases of those who have the model in the path: as Azure's
// clients, and as OpenAI's had it once. A name, which may have slashes, and the
// path of an endpoint follow.
func ModelBases() []string {
	return []string{"/openai/deployments/", "/engines/", "/v1/engines/"}
}

// maxNamed bounds the name of a model in a path, in bytes.
const maxNamed = 256

// Named returns the endpoint whose path rest ends in, and the name of the model
// before it; nil where there is none that has a model in its body, or where the
// name is too long or holds a control character.
func Named(rest string) (e *Endpoint, model string) {
	rest = "/" + strings.TrimSuffix(rest, "/")
	for _, e := range table {
		model, found := strings.CutSuffix(rest, e.Path)
		if found && e.APIs != Google && nameable(model[min(1, len(model)):]) && !e.Root && !e.Stored && e.Methods == nil {
			return e, model[1:]
		}
	}
	return nil, ""
}

func nameable(model string) bool {
	return model != "" && len(model) <= maxNamed && !strings.ContainsFunc(model, unicode.IsControl)
}
