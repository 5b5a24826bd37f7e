package upstream

import (
	"net/url"
	"strings"

	"github.com/tidwall/gjson"
)

// Who makes credentials that expire: the words of auth.
const (
	AuthGoogle = "google" // Google's application default credentials
	AuthAzure  = "azure"  // Microsoft Entra ID's default credential
	AuthAWS    = "aws"    // each request is signed (SigV4) with AWS credentials
)

// RegionOf is the region in the name of one of AWS's hosts, as in
// bedrock-runtime.us-east-1.amazonaws.com; "" = there is none.
func RegionOf(host string) string {
	parts := strings.Split(host, ".")
	if len(parts) >= 4 && parts[len(parts)-2] == "amazonaws" || len(parts) >= 5 && parts[len(parts)-3] == "amazonaws" {
		return parts[1]
	}
	return ""
}

// ProxyURL tells whether text is where a proxy is: as net/http takes it.
func ProxyURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !serverOf(u) || u.Port() == "" || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return false
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return true
	}
	return false
}

// googleKeyRefused reads the reason that Google gives for a key that is wrong or has
// expired: it answers so with 400. Its OpenAI layer puts the error into an array.
func googleKeyRefused(start []byte) bool {
	for _, path := range []string{"error.details.#.reason", "0.error.details.#.reason"} {
		for _, reason := range gjson.GetBytes(start, path).Array() {
			if reason.Str == "API_KEY_INVALID" {
				return true
			}
		}
	}
	return false
}
