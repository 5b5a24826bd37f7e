package kubernetes

import "encoding/pem"

// pemOf is the certificate of s.
func pemOf(s *server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}
