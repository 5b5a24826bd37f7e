package kubernetes

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/must"
)

var (
	apiserverFlag = flag.String("apiserver", "", "kube-apiserver to test against: make kubernetes")
	etcdFlag      = flag.String("etcd", "etcd", "etcd beside it")
)

// cluster is a real API server over a real etcd, without nodes.
type cluster struct {
	t         *testing.T
	dir, url  string
	args      []string
	apiserver *exec.Cmd
	http      *http.Client
}

func freePort(t *testing.T) string {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func newRealCluster(t *testing.T) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // #nosec: only the Cluster's own client has to trust
	client, peer, port := freePort(t), freePort(t), freePort(t)
	c.start(exec.Command(*etcdFlag, "--data-dir", c.file("etcd"), "--listen-client-urls", "http://127.0.0.1:"+client, "--advertise-client-urls", "http://127.0.0.1:"+client,
		"--listen-peer-urls", "http://127.0.0.1:"+peer, "--initial-advertise-peer-urls", "http://127.0.0.1:"+peer, "--initial-cluster", "default=http://127.0.0.1:"+peer, "--unsafe-no-fsync"))
	key := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	c.write("sa.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	c.write("tokens.csv", "boss,boss,1,\"system:masters\"\ngateway,system:serviceaccount:serving:pacer,2\n")
	c.write("token", "gateway\n")
	c.url = "https://127.0.0.1:" + port
	c.args = []string{
		"--etcd-servers", "http://127.0.0.1:" + client, "--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", c.file("certs"),
		"--service-account-key-file", c.file("sa.key"), "--service-account-signing-key-file", c.file("sa.key"), "--service-account-issuer", "https://test",
		"--token-auth-file", c.file("tokens.csv"), "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.9.0.0/24",
		"--disable-admission-plugins", "ServiceAccount",
	}
	c.serve()
	return c
}

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *cluster) write(name, text string) {
	must.Do(c.t, os.WriteFile(c.file(name), []byte(text), 0o600))
}

func (c *cluster) start(cmd *exec.Cmd) {
	log := must.Get(os.Create(c.file(filepath.Base(cmd.Path) + ".log")))(c.t)
	cmd.Stdout, cmd.Stderr = log, log
	must.Do(c.t, cmd.Start())
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
}

// serve starts the API server and waits until it is ready.
func (c *cluster) serve() {
	c.apiserver = exec.Command(*apiserverFlag, c.args...)
	c.start(c.apiserver)
	for deadline := time.Now().Add(3 * patience); ; time.Sleep(200 * time.Millisecond) {
		if code, _ := c.do("GET", "/readyz", ""); code == 200 {
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(c.file("kube-apiserver.log"))
			c.t.Fatalf("the API server is not ready:\n%s", text[max(0, len(text)-4000):])
		}
	}
}

func (c *cluster) kill() {
	_ = c.apiserver.Process.Kill()
	_ = c.apiserver.Wait()
	c.http.CloseIdleConnections()
}

func (c *cluster) do(method, path, body string) (int, string) {
	req, err := http.NewRequest(method, c.url+path, bytes.NewReader([]byte(body)))
	must.Do(c.t, err)
	req.Header.Set("Authorization", "Bearer boss")
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func (c *cluster) must(method, path, body string) {
	c.t.Helper()
	if code, text := c.do(method, path, body); code < 200 || code > 299 {
		c.t.Fatalf("%s %s: %d %s", method, path, code, text)
	}
}

const realSlices = "/apis/discovery.k8s.io/v1/namespaces/serving/endpointslices"

// endpoints writes the slice of the Service vllm: "pod ip state" each.
func (c *cluster) endpoints(method, name string, pods ...string) {
	c.t.Helper()
	var list []string
	for _, p := range pods {
		f := strings.Fields(p)
		list = append(list, fmt.Sprintf(`{"addresses":[%q],"conditions":{"ready":%t,"terminating":%t},"targetRef":{"kind":"Pod","name":%q,"namespace":"serving","uid":%q}}`,
			f[1], f[2] == "ready", f[2] == "terminating", f[0], c.uid(f[0])))
	}
	path := realSlices
	if method != "POST" {
		path += "/" + name
	}
	c.must(method, path, fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":%q,"labels":{"kubernetes.io/service-name":"vllm"}},"addressType":"IPv4","ports":[{"name":"http","port":8000}],"endpoints":[%s]}`, name, strings.Join(list, ",")))
}

func (c *cluster) uid(pod string) string {
	_, text := c.do("GET", "/api/v1/namespaces/serving/pods/"+pod, "")
	_, rest, _ := strings.Cut(text, `"uid":"`)
	uid, _, _ := strings.Cut(rest, `"`)
	return uid
}

func (c *cluster) pod(name, annotations string) {
	c.must("POST", "/api/v1/namespaces/serving/pods", fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"app":"vllm"},"annotations":{%s}},"spec":{"automountServiceAccountToken":false,"nodeName":"n","containers":[{"name":"c","image":"x"}]}}`, name, annotations))
}

func (c *cluster) running(name, ip string) {
	c.must("PATCH", "/api/v1/namespaces/serving/pods/"+name+"/status", fmt.Sprintf(`{"status":{"phase":"Running","podIP":%q,"podIPs":[{"ip":%q}],"conditions":[{"type":"Ready","status":"True"}]}}`, ip, ip))
}

// The same against a real API server with roles: the one of the chart lets in, and no
// more than that is asked for. It is killed and comes back.
func TestARealAPIServer(t *testing.T) {
	if *apiserverFlag == "" {
		t.Skip("make kubernetes builds one")
	}
	api := newRealCluster(t)
	api.must("POST", "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"serving"}}`)
	api.pod("vllm-0", `"pacer.dev/prior":"llama-3.1-70b/h200/vllm"`)
	api.pod("vllm-1", "")
	api.endpoints("POST", "vllm-a", "vllm-0 10.1.0.1 ready")
	k := config.Kubernetes{Service: "vllm", Namespace: "serving", API: api.url, TokenFile: api.file("token"), CAFile: api.file("certs/apiserver.crt")}
	c, b := New(Options{}), backendOf(k)
	t.Cleanup(c.Close)

	until(t, c, b, "", true) // nobody has given it the right
	api.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/serving/roles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"pacer"},"rules":[
		{"apiGroups":["discovery.k8s.io"],"resources":["endpointslices"],"verbs":["list","watch"]},{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	api.must("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/serving/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"pacer"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"pacer"},"subjects":[{"kind":"ServiceAccount","name":"pacer","namespace":"serving"}]}`)
	list := until(t, c, b, "vllm-0 10.1.0.1:8000", false)
	if list[0].Says["prior"] != "llama-3.1-70b/h200/vllm" || len(list[0].UID) != 36 {
		t.Errorf("vllm-0 is %+v", list[0])
	}
	api.endpoints("PUT", "vllm-a", "vllm-0 10.1.0.1 terminating", "vllm-1 10.1.0.2 ready")
	until(t, c, b, "vllm-0 10.1.0.1:8000 draining, vllm-1 10.1.0.2:8000", false)
	api.endpoints("PUT", "vllm-a", "vllm-1 10.1.0.2 ready")
	until(t, c, b, "vllm-1 10.1.0.2:8000", false)

	api.kill()
	until(t, c, b, "vllm-1 10.1.0.2:8000", true)
	api.serve()
	until(t, c, b, "vllm-1 10.1.0.2:8000", false)
	api.endpoints("PUT", "vllm-a", "vllm-0 10.1.0.1 ready", "vllm-1 10.1.0.2 ready")
	until(t, c, b, "vllm-0 10.1.0.1:8000, vllm-1 10.1.0.2:8000", false)

	// A pool: its kind is the extension's, here as far as discovery reads it.
	api.must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"inferencepools.inference.networking.k8s.io","annotations":{"api-approved.kubernetes.io":"unapproved, test"}},
		"spec":{"group":"inference.networking.k8s.io","names":{"kind":"InferencePool","plural":"inferencepools","singular":"inferencepool","listKind":"InferencePoolList"},"scope":"Namespaced",
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	pools := "/apis/inference.networking.k8s.io/v1/namespaces/serving/inferencepools"
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		code, text := api.do("POST", pools, `{"apiVersion":"inference.networking.k8s.io/v1","kind":"InferencePool","metadata":{"name":"llama"},"spec":{"selector":{"matchLabels":{"app":"vllm"}},"targetPorts":[{"number":8000}]}}`)
		if code == 201 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no pool: %d %s", code, text)
		}
	}
	k.Service, k.Pool = "", "llama"
	b = backendOf(k)
	until(t, c, b, "", true)
	api.must("PUT", "/apis/rbac.authorization.k8s.io/v1/namespaces/serving/roles/pacer", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"pacer"},"rules":[
		{"apiGroups":["inference.networking.k8s.io"],"resources":["inferencepools"],"resourceNames":["llama"],"verbs":["list","watch"]},{"apiGroups":[""],"resources":["pods"],"verbs":["list","watch"]}]}`)
	until(t, c, b, "", false)
	api.running("vllm-0", "10.1.0.1")
	api.running("vllm-1", "10.1.0.2")
	until(t, c, b, "vllm-0 10.1.0.1:8000, vllm-1 10.1.0.2:8000", false)
	// It runs on a node, so it ends when the node says so.
	api.must("DELETE", "/api/v1/namespaces/serving/pods/vllm-0", "")
	until(t, c, b, "vllm-0 10.1.0.1:8000 draining, vllm-1 10.1.0.2:8000", false)
	api.must("DELETE", "/api/v1/namespaces/serving/pods/vllm-0", `{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)
	until(t, c, b, "vllm-1 10.1.0.2:8000", false)
}
