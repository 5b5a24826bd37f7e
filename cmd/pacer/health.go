package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/pacer-dev/pacer/internal/report"
)

func newHealthCommand() *cobra.Command {
	var timeout time.Duration
	var insecure bool
	c := &cobra.Command{
		Use:   "health [URL]",
		Short: "Ask a gateway whether it lives; exit code 0 if it says 200",
		Long: `Asks /healthz of a gateway, or what the URL names: http://host:8080/readyz. It is
for a health check in a container, where nothing else is that could ask.`,
		Args: atMostOneArgument,
		RunE: func(cmd *cobra.Command, args []string) error {
			at := "http://127.0.0.1:8080/healthz"
			if len(args) == 1 {
				u, err := url.Parse(args[0])
				if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
					return report.Usage(fmt.Errorf("%q is no URL; write http://127.0.0.1:8080", args[0]))
				}
				if u.Path == "" || u.Path == "/" {
					u.Path = "/healthz"
				}
				at = u.String()
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return askHealth(ctx, at, insecure)
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 3*time.Second, "how long the answer may take")
	c.Flags().BoolVar(&insecure, "insecure", false, "believe any certificate: the gateway's own name is rarely 127.0.0.1")
	return c
}

// askHealth returns nil if at answers 200. It follows no redirect and uses no
// proxy.
func askHealth(ctx context.Context, at string, insecure bool) error {
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: insecure}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return fmt.Errorf("%w; ask by a name that the certificate has, or with --insecure", err)
	}
	if err != nil {
		return fmt.Errorf("%w; see whether a gateway runs there, or name another one: pacer health http://HOST:PORT", err)
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 4096)
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", at, answer.Status)
	}
	return nil
}
