package chart

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write deploy/kubernetes/pacer.yaml")

const (
	chartDir  = "../../../deploy/helm/pacer"
	manifests = "../../../deploy/kubernetes/pacer.yaml"
)

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// render is helm template with values; the schema has its word first.
func render(t *testing.T, values string) (string, error) {
	t.Helper()
	c := load(t)
	var v map[string]any
	if err := yaml.Unmarshal([]byte(values), &v); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "pacer", Namespace: "pacer", IsInstall: true}, chartutil.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); strings.HasSuffix(name, ".yaml") && text != "" {
			fmt.Fprintf(&out, "---\n%s\n", strings.TrimPrefix(text, "---\n"))
		}
	}
	return out.String(), nil
}

func mustRender(t *testing.T, values string) objects {
	t.Helper()
	text, err := render(t, values)
	if err != nil {
		t.Fatalf("%v\nof\n%s", err, values)
	}
	return decode(t, text)
}

// objects are those of a rendering, by kind and name.
type objects map[string]any

// kinds are what may be rendered. Those of the Prometheus operator are read as far as
// the chart writes them.
var kinds = map[string]func() any{
	"v1/ConfigMap":                             func() any { return &corev1.ConfigMap{} },
	"v1/Namespace":                             func() any { return &corev1.Namespace{} },
	"v1/Service":                               func() any { return &corev1.Service{} },
	"v1/ServiceAccount":                        func() any { return &corev1.ServiceAccount{} },
	"apps/v1/Deployment":                       func() any { return &appsv1.Deployment{} },
	"autoscaling/v2/HorizontalPodAutoscaler":   func() any { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"networking.k8s.io/v1/NetworkPolicy":       func() any { return &networkingv1.NetworkPolicy{} },
	"policy/v1/PodDisruptionBudget":            func() any { return &policyv1.PodDisruptionBudget{} },
	"rbac.authorization.k8s.io/v1/Role":        func() any { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1/RoleBinding": func() any { return &rbacv1.RoleBinding{} },
	"monitoring.coreos.com/v1/ServiceMonitor":  func() any { return &serviceMonitor{} },
	"monitoring.coreos.com/v1/PrometheusRule":  func() any { return &prometheusRule{} },
}

type serviceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		JobLabel  string               `json:"jobLabel"`
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port     string `json:"port"`
			Path     string `json:"path"`
			Interval string `json:"interval"`
		} `json:"endpoints"`
	} `json:"spec"`
}

type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []struct {
			Name     string `json:"name"`
			Interval string `json:"interval"`
			Rules    []struct {
				Record      string            `json:"record"`
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				KeepFor     string            `json:"keep_firing_for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// decode reads each document strictly: what its type does not have is an error.
func decode(t *testing.T, text string) objects {
	t.Helper()
	out := objects{}
	for _, doc := range strings.Split("\n"+text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var head struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatalf("%v\nof\n%s", err, doc)
		}
		build := kinds[head.APIVersion+"/"+head.Kind]
		if build == nil {
			t.Errorf("unknown %s/%s of\n%s", head.APIVersion, head.Kind, doc)
			continue
		}
		o := build()
		if err := yaml.UnmarshalStrict([]byte(doc), o); err != nil {
			t.Errorf("%v\nof\n%s", err, doc)
		}
		if head.Name == "" || len(head.Name) > 63 || out[head.Kind+" "+head.Name] != nil {
			t.Errorf("the name %q of a %s", head.Name, head.Kind)
		}
		out[head.Kind+" "+head.Name] = o
	}
	return out
}

// pacer is the program, built once.
func pacer(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "pacer")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/pacer")
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

const everything = `
replicas: 3
image: { digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" }
imagePullSecrets: [ { name: registry } ]
config:
  admin: { token: "${ADMIN_TOKEN}" }
  backends: [ { name: a, url: "http://vllm.gpus:8000/v1", api_key: "${KEY}", discover: { kubernetes: { pool: llama, namespace: gpus } } } ]
  routes: [ { model: "*", targets: [ { backend: a } ] } ]
secrets: [ { name: ADMIN_TOKEN, secret: pacer, key: admin-token }, { name: KEY, secret: pacer, key: key } ]
timeouts: { drain: 10m30s, linger: 5s }
discovery: { services: true, pools: [ llama ], namespace: gpus }
serviceAccount: { annotations: { a: b } }
service: { type: LoadBalancer, annotations: { a: b } }
autoscaling: { enabled: true, maxReplicas: 20 }
networkPolicy: { restrictEgress: true, clients: [ { namespaceSelector: {} } ], prometheus: [ { namespaceSelector: { matchLabels: { a: b } } } ], egress: [ { to: [ { ipBlock: { cidr: 10.0.0.0/8 } } ] } ] }
metrics: { serviceMonitor: { enabled: true, labels: { release: prometheus } }, rules: { enabled: true, labels: { release: prometheus } } }
podAnnotations: { a: b }
podLabels: { a: b }
nodeSelector: { a: b }
tolerations: [ { key: a, operator: Exists } ]
affinity: { nodeAffinity: {} }
priorityClassName: high
extraVolumes: [ { name: x, emptyDir: {} } ]
extraVolumeMounts: [ { name: x, mountPath: /x } ]
`

const least = `
replicas: 1
discovery: { services: false }
valkey: { enabled: false }
networkPolicy: { enabled: false }
podDisruptionBudget: { enabled: false }
serviceAccount: { create: false }
config: { backends: [ { name: a, url: "http://vllm:8000/v1" } ], routes: [ { model: chat, targets: [ { backend: a } ] } ], store: "rediss://valkey:6380" }
`

// Whatever the values, what is rendered is what Kubernetes knows, a namespace with
// the restricted standard takes its pods, they have time to drain, and the program
// takes its configuration.
func TestTheChart(t *testing.T) {
	program := pacer(t)
	standard, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile("testdata/0.1.0/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string]string{"as it comes": "", "everything": everything, "least": least, "values of 0.1.0": string(old)} {
		t.Run(name, func(t *testing.T) {
			all := mustRender(t, values)
			pods := 0
			for what, o := range all {
				d, ok := o.(*appsv1.Deployment)
				if !ok {
					continue
				}
				pods++
				for _, r := range standard.EvaluatePod(podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}, &d.Spec.Template.ObjectMeta, &d.Spec.Template.Spec) {
					if !r.Allowed {
						t.Errorf("%s: %s: %s", what, r.ForbiddenReason, r.ForbiddenDetail)
					}
				}
				for _, c := range d.Spec.Template.Spec.Containers {
					if c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem || c.Resources.Limits.Memory().IsZero() {
						t.Errorf("%s: its files may be written, or its memory has no bound", what)
					}
				}
				if !matches(d.Spec.Selector.MatchLabels, d.Spec.Template.Labels) {
					t.Errorf("%s: selects others than its own pods", what)
				}
			}
			if pods == 0 {
				t.Fatal("nothing runs")
			}
			conf := filepath.Join(t.TempDir(), "pacer.yaml")
			if err := os.WriteFile(conf, []byte(all["ConfigMap pacer"].(*corev1.ConfigMap).Data["pacer.yaml"]), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, "check", conf)
			cmd.Env = append(os.Environ(), "ADMIN_TOKEN=0123456789abcdef0123456789abcdef", "KEY=k")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("pacer check: %v\n%s", err, out)
			}
			selected(t, all)
		})
	}
}

func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// selected checks that whoever selects pods selects some.
func selected(t *testing.T, all objects) {
	t.Helper()
	for what, o := range all {
		var selector map[string]string
		switch o := o.(type) {
		case *corev1.Service:
			selector = o.Spec.Selector
		case *policyv1.PodDisruptionBudget:
			selector = o.Spec.Selector.MatchLabels
		case *networkingv1.NetworkPolicy:
			selector = o.Spec.PodSelector.MatchLabels
		default:
			continue
		}
		n := 0
		for _, d := range all {
			if d, ok := d.(*appsv1.Deployment); ok && matches(selector, d.Spec.Template.Labels) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s selects the pods of %d Deployments, want one", what, n)
		}
	}
}

func TestWhatValuesDo(t *testing.T) {
	all := mustRender(t, everything)
	d := all["Deployment pacer"].(*appsv1.Deployment)
	pod := d.Spec.Template.Spec
	if got := *pod.TerminationGracePeriodSeconds; got != 10*60+30+20 {
		t.Errorf("a pod that drains for 10m30s has %d s to end", got)
	}
	if d.Spec.Replicas != nil {
		t.Error("the Deployment and the HPA both say how many there are")
	}
	if !strings.HasSuffix(pod.Containers[0].Image, "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef") {
		t.Errorf("image %s", pod.Containers[0].Image)
	}
	if env := pod.Containers[0].Env; len(env) != 2 || env[0].Value != "" || env[0].ValueFrom.SecretKeyRef.Key != "admin-token" {
		t.Errorf("env %+v", env)
	}
	role := all["Role pacer"].(*rbacv1.Role)
	if role.Namespace != "gpus" || fmt.Sprint(role.Rules[1].ResourceNames) != "[llama]" || fmt.Sprint(role.Rules[2].Verbs) != "[get list watch]" {
		t.Errorf("role %+v", role)
	}
	for what := range all {
		if strings.HasPrefix(what, "Cluster") {
			t.Errorf("%s: a right for the whole cluster", what)
		}
	}
	for _, name := range []string{"rules", "alerts"} {
		if r := all["PrometheusRule pacer-"+name].(*prometheusRule); len(r.Spec.Groups) == 0 {
			t.Errorf("no %s", name)
		}
	}
	if got := *mustRender(t, least)["Deployment pacer"].(*appsv1.Deployment).Spec.Template.Spec.AutomountServiceAccountToken; got {
		t.Error("a gateway that discovers nothing has a token")
	}
}

// The schema refuses what would be rendered into something else than was meant.
func TestWrongValues(t *testing.T) {
	for _, values := range []string{
		"replica: 2", "replicas: 0", "timeouts: { drain: 30 }", "timeouts: { drain: soon, linger: 1s }", "image: { digest: latest }", "config: { listen: \":80\", backends: [ {} ], routes: [ {} ] }",
		"secrets: [ { name: A, value: secret } ]", "service: { type: Internal }", "podDisruptionBudget: { maxUnavailable: 0 }", "metrics: { servicemonitor: { enabled: true } }",
	} {
		if text, err := render(t, values); err == nil {
			t.Errorf("taken: %s\n%.300s", values, text)
		}
	}
}

// What cannot be changed in place is as in the last release, so that an upgrade
// with its values goes through.
func TestUpgrade(t *testing.T) {
	values, err := os.ReadFile("testdata/0.1.0/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	all := mustRender(t, string(values))
	for _, what := range slices.Sorted(maps.Keys(all)) {
		switch o := all[what].(type) {
		case *appsv1.Deployment:
			fmt.Fprintln(&got, what, o.Spec.Selector.MatchLabels)
		case *rbacv1.RoleBinding:
			fmt.Fprintln(&got, what, o.RoleRef)
		default:
			fmt.Fprintln(&got, what)
		}
	}
	want(t, "testdata/0.1.0/lasting.txt", got.String())
}

// deploy/kubernetes/pacer.yaml is the chart as it comes, for who has no Helm.
func TestPlainManifests(t *testing.T) {
	text, err := render(t, "")
	if err != nil {
		t.Fatal(err)
	}
	text = "# The chart of deploy/helm/pacer as it comes, for kubectl apply -n pacer -f. Written by\n# make chart UPDATE=1; change pacer.yaml in the ConfigMap.\n---\n" +
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: pacer\n  labels:\n    pod-security.kubernetes.io/enforce: restricted\n" +
		strings.ReplaceAll(text, "app.kubernetes.io/managed-by: Helm", "app.kubernetes.io/managed-by: kubectl")
	decode(t, text[strings.Index(text, "---"):])
	want(t, manifests, text)
}

func want(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	has, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(has, []byte(got)) {
		t.Errorf("%s is otherwise; -update writes it:\n%s", file, got)
	}
}
