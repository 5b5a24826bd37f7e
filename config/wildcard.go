package config

import "strings"

// A name of a route that ends with * is a wildcard: it stands for every name that
// begins as it does. What the star stands for in a request goes in place of the
// star in the name of a target's model.

// Wildcard returns what every name begins with that the route name stands for; ok
// is false where it stands for itself alone. "*" stands for all names.
func Wildcard(name string) (prefix string, ok bool) { return strings.CutSuffix(name, everyModel) }

// RouteName is the name of the route that model belongs to: the name itself, else
// the longest wildcard that fits. "" = none. It looks through all routes.
func (c *Config) RouteName(model string) string {
	best := ""
	for _, r := range c.Routes {
		for _, name := range r.Models {
			if _, wild := Wildcard(name); name == model && !wild {
				return name
			}
			if prefix, wild := Wildcard(name); wild && Covers(prefix, model) && len(name) > len(best) {
				best = name
			}
		}
	}
	return best
}

// Covers reports whether a wildcard stands for model; prefix is what comes before
// its star.
func Covers(prefix, model string) bool {
	return prefix == "" || strings.HasPrefix(model, prefix) && model != prefix
}

// Expand puts what the star of the route name stands for in called in place of
// the star of model.
func Expand(model, name, called string) string {
	before, found := strings.CutSuffix(model, everyModel)
	if !found {
		return model
	}
	prefix, _ := Wildcard(name)
	return before + strings.TrimPrefix(called, prefix)
}

// star reports a * that does not stand at the end, or a second one.
func star(name string) bool {
	rest, _ := Wildcard(name)
	return strings.Contains(rest, everyModel)
}

// checkWildcards refuses stars that mean nothing.
func (r *reader) checkWildcards(i int) {
	route := &r.cfg.Routes[i]
	single := ""
	for j, name := range route.Models {
		if star(name) {
			r.problem(r.at(modelAt(i, j)), "the * of %s is not at its end; write a prefix and one *, such as \"openai/*\"", quote(name))
		}
		if _, wild := Wildcard(name); !wild {
			single = name
		}
	}
	for j, t := range route.Targets {
		at := r.at(targetAt(i, j, ".model"))
		switch _, wild := Wildcard(t.Model); {
		case star(t.Model):
			r.problem(at, "the * of the target's model %s is not at its end; write a prefix and one *, or leave the model out", quote(t.Model))
		case wild && single != "":
			r.problem(at, "the target's model %s has a *, and the route's name %s has none to put there; write the name of one model", quote(t.Model), quote(single))
		}
	}
}
