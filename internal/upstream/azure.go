package upstream

import (
	"net/url"
	"regexp"
	"strings"
)

// azureQuery returns the query of Azure's url, with its question mark. Nothing
// but the version stands there: the url is shown, and a key in it would be too.
func azureQuery(u *url.URL) (query, wrong string) {
	parameters, err := url.ParseQuery(u.RawQuery)
	version := parameters.Get("api-version")
	switch {
	case err != nil || len(parameters) > 1 || len(parameters) == 1 && (version == "" || len(parameters["api-version"]) > 1):
		return "", "the url's query holds something other than one api-version; write it as in https://name.openai.azure.com/openai?api-version=2024-10-21, and a key as api_key:"
	case version != "":
		return "?" + parameters.Encode(), ""
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/openai") || strings.Contains(u.Path, "/openai/deployments/"):
		return "", "the url lacks the version that Azure wants below /openai; write it as in https://name.openai.azure.com/openai?api-version=2024-10-21, or use https://name.openai.azure.com/openai/v1"
	}
	return "", ""
}

// Deploys tells whether the model that is asked of a backend becomes a part of
// its URL: so it is in Azure's API with a version. base is the backend's URL.
func (k *Kind) Deploys(base string) bool {
	base, _, _ = strings.Cut(base, "?")
	return k.deployments && strings.HasSuffix(base, "/openai")
}

var deploymentName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// DeploymentName tells whether model can be the name of a deployment in Azure,
// which is one step of a path: letters, digits, dots, - and _, and no step that
// leads elsewhere.
func DeploymentName(model string) bool {
	return deploymentName.MatchString(model) && strings.Trim(model, ".") != ""
}
