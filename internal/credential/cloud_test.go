package credential

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
)

// endpoint is a server that hands out credentials. Connections are not kept: those
// of the clouds' libraries would outlive the test.
func endpoint(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(answer)
	s.Config.SetKeepAlivesEnabled(false)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// say writes v as JSON.
func say(w http.ResponseWriter, v map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// forget takes away what of the machine's own would be found first.
func forget(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	} {
		t.Setenv(name, "")
		_ = os.Unsetenv(name)
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// A service account of Google's signs for a token, and the token is kept until it
// expires.
func TestGooglesServiceAccount(t *testing.T) {
	forget(t)
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	asked := 0
	url := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		parts := strings.Split(r.FormValue("assertion"), ".")
		if len(parts) != 3 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
		sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
		claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
		if err := rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature); err != nil || !strings.Contains(string(claims), googleScope) || !strings.Contains(string(claims), "gw@project") {
			t.Errorf("signed badly (%v): %s", err, claims)
		}
		say(w, map[string]any{"access_token": "ya29.token", "token_type": "Bearer", "expires_in": 3600})
	})
	text := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	account, _ := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "gw@project", "private_key_id": "1", "token_uri": url,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})),
	})
	file := filepath.Join(t.TempDir(), "account.json")
	must.Do(t, os.WriteFile(file, account, 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	source := Google()
	for range 3 {
		v, err := source.Get(t.Context())
		if left := time.Until(v.Expires); err != nil || v.Secret != "ya29.token" || !v.Token || left < 50*time.Minute || left > time.Hour {
			t.Errorf("got %+v (%v)", v, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
}

// What a token endpoint says of why not is left out: it may hold a secret.
func TestGooglesRefusalIsNotRepeated(t *testing.T) {
	forget(t)
	url := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		say(w, map[string]any{"error": "invalid_grant", "error_description": "secret-of-the-endpoint"})
	})
	file := filepath.Join(t.TempDir(), "user.json")
	user := `{"type":"authorized_user","client_id":"i","client_secret":"s","refresh_token":"r","token_uri":"` + url + `"}`
	must.Do(t, os.WriteFile(file, []byte(user), 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	t.Setenv("HTTPS_PROXY", url) // the endpoint of users is Google's own
	_, err := Google().Get(t.Context())
	if err == nil || strings.Contains(err.Error(), "secret-of-the-endpoint") {
		t.Errorf("got %v", err)
	}
}

// On Azure a managed identity is asked, here that of App Service.
func TestAzuresManagedIdentity(t *testing.T) {
	forget(t)
	t.Setenv("IDENTITY_ENDPOINT", endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Identity-Header") != "of-the-machine" || r.URL.Query().Get("resource") != strings.TrimSuffix(azureScope, "/.default") {
			t.Errorf("asked %s with %v", r.URL, r.Header)
		}
		say(w, map[string]any{"access_token": "eyJ.azure", "expires_on": time.Now().Add(2 * time.Hour).Unix(), "resource": "r", "token_type": "Bearer"})
	}))
	t.Setenv("IDENTITY_HEADER", "of-the-machine")
	v, err := Azure().Get(t.Context())
	if left := time.Until(v.Expires); err != nil || v.Secret != "eyJ.azure" || !v.Token || left < 110*time.Minute || left > 2*time.Hour {
		t.Errorf("got %+v (%v)", v, err)
	}
}

// On AWS the credentials of a container are fetched, with the time they end.
func TestAmazonsContainer(t *testing.T) {
	forget(t)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "of-the-task" {
			t.Errorf("asked with %v", r.Header)
		}
		say(w, map[string]any{"AccessKeyId": "AKIA", "SecretAccessKey": "s", "Token": "session", "Expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	}))
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "of-the-task")
	v, err := Amazon().Get(t.Context())
	if err != nil || v.AWS == nil || *v.AWS != (AWS{"AKIA", "s", "session"}) || v.Expires.IsZero() {
		t.Errorf("got %+v (%v)", v, err)
	}
}

// Where nothing is found, it is said where was looked.
func TestNoCredentialsOfAWS(t *testing.T) {
	forget(t)
	if _, err := Amazon().Get(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("got %v", err)
	}
}
