package api

import _ "embed" // openapi.json

// OpenAPI describes the admin API as OpenAPI 3.1, in JSON. A test writes the
// file from the types of this package: go test ./api -update.
//
//go:embed openapi.json
var OpenAPI []byte
