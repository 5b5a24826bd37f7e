package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/must"
	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

// storeGateway starts a gateway with a store and a key with all limits.
func storeGateway(t *testing.T, engine *proctest.Process, store string) *proctest.Process {
	t.Helper()
	return proctest.Start(t, nil, "serve", "-c", gatewayConfig(t, engine.Ready["url"], fmt.Sprintf(`store: %s
keys: [ { name: mobile, key: %s, limits: { requests_per_minute: 1000000, tokens_per_minute: 1000000000, concurrency: 50 } } ]
`, store, faultKey)))
}

// aclLine is what docs/CONFIG.md tells to give a user of Redis.
func aclLine(t *testing.T) []string {
	t.Helper()
	text := must.Get(os.ReadFile("../docs/CONFIG.md"))(t)
	m := regexp.MustCompile(`(?m)^ACL SETUSER pacer (.*)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("no line ACL SETUSER in docs/CONFIG.md")
	}
	return strings.Fields(string(m[1]))
}

// Over TLS, with an authority of its own, as a user that may do what the manual
// lists and no more, in a database and under a prefix: curves, load and limits
// are shared, batches are done, nothing is denied, every key is under the prefix and has a time to
// live.
func TestRedisWithTLSACLAndPrefix(t *testing.T) {
	t.Parallel()
	cert, key := proctest.Certificate(t)
	port := redistest.FreePort(t)
	redis := redistest.Start(t, "--bind", "127.0.0.1", "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	acl := []any{"ACL", "SETUSER", "pacer"}
	for _, word := range aclLine(t) {
		acl = append(acl, strings.NewReplacer(">PASSWORD", ">"+faultPassword, "~pacer:*", "~team:a:*").Replace(word))
	}
	redis.Do(append(acl, "+select")...)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	gateway := storeGateway(t, engine, fmt.Sprintf(`{ addrs: [ "127.0.0.1:%s" ], db: 3, prefix: "team:a", username: pacer, password: %s, tls: { ca_file: %q } }`, port, faultPassword, cert))
	runPhase(t, gateway, time.Second, nil)
	batchesUnderACL(t, gateway)
	keys := func() []string {
		var names []string
		for _, k := range redis.Do("EVAL", "redis.call('SELECT', 3) return redis.call('KEYS', '*')", 0).([]any) {
			names = append(names, k.(string))
		}
		return names
	}
	proctest.Until(t, "curves, load and limits in Redis", func() bool {
		all := strings.Join(keys(), " ")
		return strings.Contains(all, "team:a:{a}:sums:llama-3.1-70b") && strings.Contains(all, "team:a:{a}:seq:") &&
			strings.Contains(all, "team:a:{load}") && strings.Contains(all, "team:a:{batch}:1:sizes") && strings.Contains(all, "team:a:{mobile}:limits:1:")
	})
	for _, k := range keys() {
		if !strings.HasPrefix(k, "team:a:{") {
			t.Errorf("key %s is not under the prefix", k)
		}
		if ms := redis.Do("EVAL", "redis.call('SELECT', 3) return redis.call('PTTL', KEYS[1])", 1, k).(int64); ms <= 0 {
			t.Errorf("key %s lives for ever", k)
		}
	}
	// Leaving takes commands, too. A server that lost its data makes the
	// gateway put it back.
	redis.Do("FLUSHALL")
	proctest.Until(t, "the curves are put back", func() bool { return strings.Contains(strings.Join(keys(), " "), ":sums:") })
	if metrics(t, gateway)["pacer_store_up"] != 1 {
		t.Errorf("pacer_store_up is not 1:\n%s", strings.Join(warnings(gateway), "\n"))
	}
	gateway.Stop(15)
	if denied := redis.Do("ACL", "LOG").([]any); len(denied) > 0 {
		t.Errorf("the user was denied %v", denied)
	}
}

// batchesUnderACL has files and batches do all that they can do.
func batchesUnderACL(t *testing.T, gateway *proctest.Process) {
	t.Helper()
	ask := func(method, path, kind, body string) string {
		r := must.Get(http.NewRequest(method, gateway.Ready["data"]+path, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", kind)
		r.Header.Set("Authorization", "Bearer "+faultKey)
		resp := must.Get(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		text := string(must.Get(io.ReadAll(resp.Body))(t))
		if resp.StatusCode != 200 {
			t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
		}
		return text
	}
	id := func(text string) string {
		var v struct{ ID string }
		must.Do(t, json.Unmarshal([]byte(text), &v))
		return v.ID
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("purpose", "batch")
	part, _ := w.CreateFormFile("file", "in.jsonl")
	for i := range 3 {
		fmt.Fprintf(part, `{"custom_id":"c%d","method":"POST","url":"/v1/chat/completions","body":{"model":"chat","max_tokens":2,"messages":[{"role":"user","content":"x"}]}}`+"\n", i)
	}
	_ = w.Close()
	file := id(ask("POST", "/v1/files", w.FormDataContentType(), b.String()))
	begin := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file)
	job := id(ask("POST", "/v1/batches", "application/json", begin))
	proctest.Until(t, "a batch is done", func() bool {
		return strings.Contains(ask("GET", "/v1/batches/"+job, "", ""), `"status":"completed"`)
	})
	if out := ask("GET", "/v1/files/file-"+job+"-output/content", "", ""); strings.Count(out, `"status_code":200`) != 3 {
		t.Errorf("the output of a batch: %s", out)
	}
	ask("POST", "/v1/batches/"+id(ask("POST", "/v1/batches", "application/json", begin))+"/cancel", "", "")
	for _, path := range []string{"/v1/files", "/v1/batches", "/v1/files/" + file, "/v1/files/" + file + "/content"} {
		ask("GET", path, "", "")
	}
	ask("DELETE", "/v1/files/"+file, "", "")
}

// A Sentinel moves the master: streams run on, and what they taught before,
// during and after it is in the new master once.
func TestRedisSentinelFailover(t *testing.T) {
	t.Parallel() // waits for the Sentinel to act
	masterPort, replicaPort, port := redistest.FreePort(t), redistest.FreePort(t), redistest.FreePort(t)
	master := redistest.Start(t, "--bind", "127.0.0.1", "--port", masterPort, "--repl-diskless-sync-delay", "0")
	replica := redistest.Start(t, "--bind", "127.0.0.1", "--port", replicaPort, "--replicaof", "127.0.0.1", masterPort)
	proctest.Until(t, "the replica follows", func() bool {
		return strings.Contains(replica.Do("INFO", "replication").(string), "master_link_status:up")
	})
	redistest.StartSentinel(t, "redis-server", port, faultPassword, "main", masterPort)
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	gateway := storeGateway(t, engine, fmt.Sprintf(`{ addrs: [ "127.0.0.1:%s" ], master: main, sentinel: { password: %s } }`, port, faultPassword))

	var f redisFault
	old, promoted := &faultyRedis{Server: master}, &faultyRedis{Server: replica}
	before := runPhase(t, gateway, 2*time.Second, nil)
	f.check(t, old, before.answers)
	f.check(t, promoted, before.answers) // nothing is under way to it any more
	master.Kill()
	during := runPhase(t, gateway, 3*time.Second, nil)
	proctest.Until(t, "the replica is master", func() bool { return strings.Contains(replica.Do("INFO", "replication").(string), "role:master") })
	proctest.Until(t, "pacer_store_up 1", func() bool { return metrics(t, gateway)["pacer_store_up"] == 1 })
	after := runPhase(t, gateway, time.Second, nil)
	f.check(t, promoted, before.answers+during.answers+after.answers)
}

// Three nodes of a Cluster, of which a gateway knows one: curves, load and
// limits are shared, wherever their keys lie.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	var nodes []*redistest.Server
	var ports, buses []string
	for i := range 3 {
		port, bus := redistest.FreePort(t), redistest.FreePort(t)
		s := redistest.Start(t, "--bind", "127.0.0.1", "--port", port, "--cluster-enabled", "yes", "--cluster-port", bus)
		s.Do("CLUSTER", "ADDSLOTSRANGE", i*16384/3, (i+1)*16384/3-1)
		nodes, ports, buses = append(nodes, s), append(ports, port), append(buses, bus)
		if i > 0 {
			s.Do("CLUSTER", "MEET", "127.0.0.1", ports[0], buses[0])
		}
	}
	for _, s := range nodes {
		proctest.Until(t, "the cluster is whole", func() bool {
			info := s.Do("CLUSTER", "INFO").(string)
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	engine := proctest.Engine(t, "--preset", "llama-3.1-70b/h200/vllm", "--speed", "5")
	gateway := storeGateway(t, engine, fmt.Sprintf(`{ addrs: [ "127.0.0.1:%s", "127.0.0.1:1" ] }`, ports[0]))
	runPhase(t, gateway, time.Second, nil)
	proctest.Until(t, "curves, load and limits in the nodes", func() bool {
		all := ""
		for _, s := range nodes {
			for _, k := range s.Do("KEYS", "*").([]any) {
				all += k.(string) + " "
			}
		}
		return strings.Contains(all, ":sums:") && strings.Contains(all, ":seq:") && strings.Contains(all, "{load}") && strings.Contains(all, ":limits:")
	})
	if lines := warnings(gateway); metrics(t, gateway)["pacer_store_up"] != 1 {
		t.Errorf("pacer_store_up is not 1:\n%s", strings.Join(lines, "\n"))
	}
}
