package hostname

import (
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	for header, want := range map[string]string{
		"Gateway.Example:8080": "gateway.example", "gateway.example.": "gateway.example", "gateway.example.:80": "gateway.example",
		"127.0.0.1": "127.0.0.1", "127.0.0.1:1": "127.0.0.1", "[::1]:8080": "::1", "[::1]": "::1", "": "", ":8080": "",
		"127.0.0.1.evil.example:80": "127.0.0.1.evil.example", "[::1].evil.example": "::1].evil.example", "evil#127.0.0.1": "evil#127.0.0.1",
	} {
		if got := Of(header); got != want {
			t.Errorf("Of(%q) = %q, want %q", header, got, want)
		}
	}
}

func TestOwn(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1", "Gateway.Example:80": "gateway.example", ":8080": "", "0.0.0.0:8080": "", "[::]:8080": "", "[::1]:8080": "::1", "": "",
	} {
		if got := Own(listen); got != want {
			t.Errorf("Own(%q) = %q, want %q", listen, got, want)
		}
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "::1": true, "::ffff:127.0.0.1": true, "localhost": true, "a.localhost": true,
		"10.0.0.1": false, "0.0.0.0": false, "notlocalhost": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "0x7f.1": false, "": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("Loopback(%q) = %v, want %v", host, got, want)
		}
		if got := Local(host); got != (want && host != "a.localhost") {
			t.Errorf("Local(%q) = %v", host, got)
		}
	}
}

func TestValid(t *testing.T) {
	for host, want := range map[string]bool{
		"gpu-1.example": true, "GPU_1": true, "10.0.0.7": true, "::1": true, "fe80::1%eth0": true,
		"": false, "a b": false, "a/b": false, "a:b": false, "ü": false, "*.example": false, strings.Repeat("a", 254): false,
	} {
		if got := Valid(host); got != want {
			t.Errorf("Valid(%.40q) = %v, want %v", host, got, want)
		}
	}
	for port, want := range map[string]bool{"0": true, "80": true, "65535": true, "65536": false, "-1": false, "http": false, "": false} {
		if got := ValidPort(port); got != want {
			t.Errorf("ValidPort(%q) = %v, want %v", port, got, want)
		}
	}
}
