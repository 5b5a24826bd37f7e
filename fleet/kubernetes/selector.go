package kubernetes

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// selector are the labels that pods of a pool have.
type selector map[string]string

// UnmarshalJSON reads { matchLabels: { … } }, as v1 writes it, or the labels alone,
// as v1alpha2 does.
func (s *selector) UnmarshalJSON(data []byte) error {
	var form struct{ MatchLabels map[string]string }
	if json.Unmarshal(data, &form) == nil && form.MatchLabels != nil {
		*s = form.MatchLabels
		return nil
	}
	return json.Unmarshal(data, (*map[string]string)(s))
}

// String is s as a query writes it.
func (s selector) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, name+"="+s[name])
	}
	return strings.Join(parts, ",")
}
