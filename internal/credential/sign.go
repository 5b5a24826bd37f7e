package credential

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Sign signs a request with AWS's signature, version 4. hash is the SHA-256 of its
// body, in hexadecimal. Headers without a value, which are not sent, are left out
// of it. Whoever changes a header afterwards breaks it.
func Sign(ctx context.Context, r *http.Request, k *AWS, hash, service, region string, now time.Time) error {
	signed := r.Clone(ctx)
	maps.DeleteFunc(signed.Header, func(_ string, values []string) bool { return len(values) == 0 })
	of := aws.Credentials{AccessKeyID: k.AccessKey, SecretAccessKey: k.SecretKey, SessionToken: k.SessionToken}
	if err := v4.NewSigner().SignHTTP(ctx, of, signed, hash, service, region, now); err != nil {
		return err
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if v := signed.Header[name]; v != nil {
			r.Header[name] = v
		}
	}
	return nil
}
