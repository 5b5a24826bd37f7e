package kubernetes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pacer-dev/pacer/internal/must"
)

// kinds are those of the manifests, with where the API has them.
var kinds = map[string]string{
	"Namespace": "/api/v1/namespaces", "ConfigMap": "/api/v1/namespaces/pacer/configmaps", "Service": "/api/v1/namespaces/pacer/services",
	"ServiceAccount": "/api/v1/namespaces/pacer/serviceaccounts", "Deployment": "/apis/apps/v1/namespaces/pacer/deployments",
	"PodDisruptionBudget": "/apis/policy/v1/namespaces/pacer/poddisruptionbudgets", "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/pacer/networkpolicies",
	"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/pacer/roles", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/pacer/rolebindings",
}

// send makes a request in YAML and returns status, warnings and answer.
func (c *cluster) send(method, path, kind, body string) (code int, warnings []string, text string) {
	req := must.Get(http.NewRequest(method, c.url+path, strings.NewReader(body)))(c.t)
	req.Header.Set("Authorization", "Bearer boss")
	req.Header.Set("Content-Type", kind)
	resp := must.Get(c.http.Do(req))(c.t)
	defer resp.Body.Close()
	data := must.Get(io.ReadAll(resp.Body))(c.t)
	return resp.StatusCode, resp.Header.Values("Warning"), string(data)
}

// A real API server takes the plain manifests as kubectl apply --server-side sends them, with
// no field that it does not know and without a warning, and once more without a change. Its
// own admission lets the pods of both Deployments into the namespace, which is restricted.
func TestTheManifestsAreApplied(t *testing.T) {
	if *apiserverFlag == "" {
		t.Skip("make kubernetes builds one")
	}
	all := must.Get(os.ReadFile("../../deploy/kubernetes/pacer.yaml"))(t)
	api := newRealCluster(t)
	named := regexp.MustCompile(`(?m)^kind: (\w+)$(?s:.*?)^  name: (\S+)$`)
	applied := map[string]string{} // name -> resourceVersion
	for _, want := range []int{http.StatusCreated, http.StatusOK} {
		for part := range strings.SplitSeq(string(all), "\n---\n") {
			found := named.FindStringSubmatch(part)
			if found == nil {
				continue
			}
			where := kinds[found[1]] + "/" + found[2]
			code, warnings, text := api.send("PATCH", where+"?fieldManager=test&fieldValidation=Strict", "application/apply-patch+yaml", part)
			if code != want || len(warnings) > 0 {
				t.Fatalf("%s: %d, want %d; warnings %q\n%s", where, code, want, warnings, text)
			}
			var o struct {
				Metadata struct{ ResourceVersion string }
			}
			must.Do(t, json.Unmarshal([]byte(text), &o))
			if was := applied[where]; was != "" && was != o.Metadata.ResourceVersion {
				t.Errorf("%s is changed by what has not changed", where)
			}
			applied[where] = o.Metadata.ResourceVersion
		}
	}
	if len(applied) != 13 {
		t.Errorf("%d objects, want 13", len(applied))
	}
	for _, name := range []string{"pacer", "pacer-valkey"} {
		pod := api.podOf(name)
		if code, warnings, text := api.send("POST", "/api/v1/namespaces/pacer/pods?dryRun=All", "application/json", pod); code != http.StatusCreated || len(warnings) > 0 {
			t.Errorf("a pod of %s: %d, warnings %q\n%s", name, code, warnings, text)
		}
		root := strings.Replace(pod, `"runAsNonRoot":true`, `"runAsNonRoot":false`, 1)
		if code, _, _ := api.send("POST", "/api/v1/namespaces/pacer/pods?dryRun=All", "application/json", root); code != http.StatusForbidden {
			t.Errorf("a pod of %s that may be root: %d, want 403", name, code)
		}
	}
}

// podOf is the pod that a Deployment asks for.
func (c *cluster) podOf(deployment string) string {
	var d struct {
		Spec struct {
			Template struct{ Metadata, Spec json.RawMessage }
		}
	}
	_, text := c.do("GET", kinds["Deployment"]+"/"+deployment, "")
	must.Do(c.t, json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&d))
	meta := strings.Replace(string(d.Spec.Template.Metadata), "{", `{"name":"one",`, 1)
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":%s,"spec":%s}`, meta, d.Spec.Template.Spec)
}
