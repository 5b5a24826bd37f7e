package config

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// owed are the fields of the example that are not there yet.
var owed []string

// The example of what can be seen from outside is read without a word, but for the
// fields that are owed.
func TestWholeContract(t *testing.T) {
	data, err := os.ReadFile("testdata/contract.yaml")
	must.Do(t, err)
	cfg, err := Parse("contract.yaml", data, variables(map[string]string{"ADMIN_TOKEN": "admin-secret", "H200_KEY": "key"}))
	var problems Errors
	if err != nil && !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var missing []string
	field := regexp.MustCompile(`^unknown field "([a-z_.]+)"`)
	for _, p := range problems {
		if m := field.FindStringSubmatch(p.Message); m != nil {
			missing = append(missing, m[1])
		} else {
			t.Error(p)
		}
	}
	slices.Sort(missing)
	if !slices.Equal(missing, owed) {
		t.Errorf("not known: %q, want %q", missing, owed)
	}
	if err != nil {
		return
	}
	b := cfg.Backends[0]
	if b.Kind != "vllm" || b.Usage != usageInject || b.DropParams || b.EgressProxy != "" || b.Labels["region"] != "eu" || b.MaxConcurrency != 256 || b.Price.Output != 0.6 {
		t.Errorf("the first backend is read as %+v", b)
	}
	if k := cfg.Keys[0]; k.Team != "apps" || k.Budget.USD != 500 || k.Limits.Concurrency != 50 {
		t.Errorf("the key is read as %+v", k)
	}
}
