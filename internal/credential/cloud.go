package credential

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/aws-sdk-go-v2/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

const (
	googleScope = "https://www.googleapis.com/auth/cloud-platform"
	azureScope  = "https://cognitiveservices.azure.com/.default"

	// cloudPatience is how long the library of a cloud may take.
	cloudPatience = 30 * time.Second
)

// cloud returns a source of what the library of a cloud makes. What it says when
// it fails is left out: it may hold what a token endpoint answered.
func cloud(what, looked string, get func(ctx context.Context) (Value, error)) Source {
	return newKept(what, func(ctx context.Context) (Value, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cloudPatience)
		defer cancel()
		v, err := get(ctx)
		var answered *oauth2.RetrieveError
		switch {
		case err == nil:
			return v, nil
		case ctx.Err() != nil:
			return Value{}, fmt.Errorf("%w (%v)", errSlow, cloudPatience)
		case errors.As(err, &answered) && answered.Response != nil:
			return Value{}, fmt.Errorf("the token endpoint answers %s", answered.Response.Status)
		}
		return Value{}, errors.New("found none that work; looked at " + looked)
	})
}

// Google returns a source of Google's application default credentials.
func Google() Source {
	return cloud("Google's application default credentials", "GOOGLE_APPLICATION_CREDENTIALS, gcloud's own file and the metadata server",
		func(ctx context.Context) (Value, error) {
			c, err := google.FindDefaultCredentials(ctx, googleScope)
			if err != nil {
				return Value{}, err
			}
			t, err := c.TokenSource.Token()
			if err != nil {
				return Value{}, err
			}
			return Value{Secret: t.AccessToken, Token: true, Expires: t.Expiry}, nil
		})
}

// Azure returns a source of Microsoft Entra ID's default credential.
func Azure() Source {
	return cloud("Microsoft Entra ID's default credential", "AZURE_CLIENT_ID and the like, workload identity, managed identity and the Azure CLI",
		func(ctx context.Context) (Value, error) {
			c, err := azidentity.NewDefaultAzureCredential(nil)
			if err != nil {
				return Value{}, err
			}
			t, err := c.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{azureScope}})
			if err != nil {
				return Value{}, err
			}
			return Value{Secret: t.Token, Token: true, Expires: t.ExpiresOn}, nil
		})
}

// Amazon returns a source of AWS's default credentials.
func Amazon() Source {
	return cloud("AWS's default credentials", "AWS_ACCESS_KEY_ID and the like, ~/.aws, web identity, ECS and EC2",
		func(ctx context.Context) (Value, error) {
			c, err := config.LoadDefaultConfig(ctx)
			if err != nil {
				return Value{}, err
			}
			k, err := c.Credentials.Retrieve(ctx)
			if err != nil {
				return Value{}, err
			}
			v := Value{AWS: &AWS{k.AccessKeyID, k.SecretAccessKey, k.SessionToken}}
			if k.CanExpire {
				v.Expires = k.Expires
			}
			return v, nil
		})
}
