package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// folder writes files into a new folder and returns it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// certificate returns a self-signed certificate and its key as PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gpu"}, NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))(t)
	keyDER := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", keyDER)
}

func TestLoadReadsNamedFiles(t *testing.T) {
	cert, key := certificate(t)
	dir := folder(t, map[string]string{
		"cert.pem": cert, "key.pem": key, "unix": "k1\n", "windows": "k2\r\n", "bare": "k3",
		"pacer.yaml": `tls: { cert: cert.pem, key: key.pem }
backends: [ { name: a, url: "https://a/v1", ca_file: cert.pem } ]
routes: [ { model: m, targets: [ { backend: a } ] } ]
keys: [ { name: a, key_file: unix }, { name: b, key_file: windows }, { name: c, key_file: bare } ]
`,
	})
	cfg := must.Get(Load(filepath.Join(dir, "pacer.yaml")))(t)
	if want := (TLS{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}); cfg.TLS != want {
		t.Errorf("tls = %v, want %v: paths start at the file's folder", cfg.TLS, want)
	}
	if got, want := cfg.Backends[0].CAFile, filepath.Join(dir, "cert.pem"); got != want {
		t.Errorf("ca_file = %q, want %q", got, want)
	}
	for i, key := range []string{"k1", "k2", "k3"} {
		if cfg.Keys[i].SHA256 != sha256.Sum256([]byte(key)) {
			t.Errorf("key %s is not that of %q: the line break at the end is no part of it", cfg.Keys[i].Name, key)
		}
	}
	if len(cfg.Source().Warnings) > 0 {
		t.Errorf("warnings %q, want none", cfg.Source().Warnings)
	}
}

func TestLoadReportsNamedFiles(t *testing.T) {
	cert, _ := certificate(t)
	_, otherKey := certificate(t)
	dir := folder(t, map[string]string{
		"cert.pem": cert, "other.pem": otherKey, "empty": "", "twice": "s3cret\n", "large": string(make([]byte, maxNamed+1)),
		"pacer.yaml": `tls: { cert: cert.pem, key: other.pem }
backends:
  - { name: a, url: "https://a/v1", ca_file: other.pem }
  - { name: b, url: "https://b/v1", ca_file: nowhere.pem }
routes: [ { model: m, targets: [ { backend: a }, { backend: b } ] } ]
keys:
  - { name: a, key_file: empty }
  - { name: b, key_file: . }
  - { name: c, key_file: large }
  - { name: d, key_file: twice }
  - { name: e, key: s3cret }
`,
		"missing.yaml": fleet + "tls: { cert: nowhere.pem, key: cert.pem }\n",
	})
	for file, want := range map[string][]string{
		"pacer.yaml": {
			"1:14: cert and key do not go together (private key does not match public key); name a PEM certificate and its own key",
			`3:46: the ca_file "other.pem" holds no certificate; name a PEM file`,
			`4:46: the ca_file "nowhere.pem" cannot be read (no such file or directory); name a PEM file`,
			"7:26: the key_file is empty; write a key, such as openssl rand -hex 32 prints",
			`8:26: the key_file "." cannot be read (not a regular file); name a file that holds the key`,
			`9:26: the key_file "large" cannot be read (larger than 1 MiB); name a file that holds the key`,
			`11:21: this is the key "d" in line 10 again; give each its own`,
		},
		"missing.yaml": {`3:14: the certificate "nowhere.pem" cannot be read (no such file or directory); name a PEM file`},
	} {
		path := filepath.Join(dir, file)
		_, err := Load(path)
		var problems Errors
		if !errors.As(err, &problems) {
			t.Errorf("%s: Load: %v, want Errors", file, err)
			continue
		}
		var got []string
		for _, p := range problems {
			got = append(got, p.String()[len(path)+1:])
		}
		same(t, file, want, got)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	cfg, err := Load(filepath.Join(t.TempDir(), "pacer.yaml"))
	if cfg != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of no file = %v, %v; want fs.ErrNotExist", cfg, err)
	}
}
