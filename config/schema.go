package config

import _ "embed"

//go:embed pacer.schema.json
var schema []byte

// Schema returns a JSON Schema (draft 7) of the file, for editors: it knows every
// field, its words and its bounds, and nothing of what spans several parts. go
// test -update writes it from the types.
func Schema() []byte { return schema }
