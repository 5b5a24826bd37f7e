//go:build linux

package hosts

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// network is hosts of their own and the wires between them. What a host sends comes out
// of a TUN device, is held for as long as the wire is long, and goes into that of another
// host: real TCP over packets that are late, lost or cut off.
type network struct {
	hosts []*host

	mu    sync.RWMutex // guards what follows
	delay time.Duration
	loss  float64 // of the packets, in [0, 1]
	apart map[*host]bool

	lost, carried int
}

// host is one network namespace. The first one is that of the test itself, whose wires
// are short and whole: clients stand beside their gateway.
type host struct {
	net     *network
	index   int
	name    string // of the namespace; "" = that of the test
	address string
	tun     *os.File
	queues  []chan packet // by sender
}

type packet struct {
	due  time.Time
	data []byte
}

const (
	mtu      = 1500
	inFlight = 4096 // packets on a wire; what is more is lost, as in a router
)

// newNetwork makes n hosts beside that of the test. It skips the test where the machine
// does not allow it.
func newNetwork(t *testing.T, n int) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	w := &network{apart: map[*host]bool{}}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	// The last 8 bits of the process set networks of two runs apart.
	prefix := fmt.Sprintf("10.77.%d.", os.Getpid()%250)
	for i := range n + 1 {
		h := &host{net: w, index: i, address: prefix + fmt.Sprint(i+1)}
		if i > 0 {
			h.name = fmt.Sprintf("pacer-%d-%d", os.Getpid(), i)
			if out, err := exec.Command("ip", "netns", "add", h.name).CombinedOutput(); err != nil {
				t.Skipf("no network namespace can be made here: %v: %s", err, out)
			}
			t.Cleanup(func() { ip(t, "netns", "del", h.name) })
		}
		h.open(t)
		w.hosts = append(w.hosts, h)
	}
	for _, h := range w.hosts {
		for range w.hosts {
			q := make(chan packet, inFlight)
			h.queues = append(h.queues, q)
			running.Go(func() { h.deliver(q) })
		}
	}
	for _, h := range w.hosts {
		running.Go(func() { h.carry() })
	}
	return w
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// open makes the host's device.
func (h *host) open(t *testing.T) {
	t.Helper()
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no TUN device: %v", err)
	}
	device := fmt.Sprintf("pt%d-%d", os.Getpid()%100_000, h.index)
	request, err := unix.NewIfreq(device)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		t.Skipf("no TUN device: %v", err)
	}
	h.tun = os.NewFile(uintptr(fd), device)
	t.Cleanup(func() { h.tun.Close() })
	within := []string{}
	if h.name != "" {
		ip(t, "link", "set", device, "netns", h.name) // the descriptor stays here
		within = []string{"-n", h.name}
		ip(t, append(within, "link", "set", "lo", "up")...)
	}
	ip(t, append(within, "addr", "add", h.address+"/24", "dev", device)...)
	ip(t, append(within, "link", "set", device, "mtu", fmt.Sprint(mtu), "up")...)
}

// command is how a program is run on the host.
func (h *host) command(program string) []string {
	if h.name == "" {
		return []string{program}
	}
	return []string{"ip", "netns", "exec", h.name, program}
}

// at is a port of the host.
func (h *host) at(port string) string { return net.JoinHostPort(h.address, port) }

// set makes every wire but those of the test so late and so lossy.
func (w *network) set(delay time.Duration, loss float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay, w.loss = delay, loss
}

// cut takes hosts off the others; without any, all are together again. The test reaches
// everybody, always.
func (w *network) cut(hosts ...*host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.apart = map[*host]bool{}
	for _, h := range hosts {
		w.apart[h] = true
	}
}

// carry takes what the host sends, until its device is closed.
func (h *host) carry() {
	defer func() {
		for _, other := range h.net.hosts {
			close(other.queues[h.index])
		}
	}()
	random := rand.New(rand.NewPCG(uint64(h.index), 7))
	for {
		data := make([]byte, mtu)
		n, err := h.tun.Read(data)
		if err != nil {
			return
		}
		if n < 20 || data[0]>>4 != 4 { // IPv6 looks for neighbours here
			continue
		}
		for _, to := range h.net.hosts {
			if net.IP(data[16:20]).String() == to.address {
				h.send(to, data[:n], random)
			}
		}
	}
}

func (h *host) send(to *host, data []byte, random *rand.Rand) {
	w := h.net
	w.mu.Lock()
	defer w.mu.Unlock()
	delay, far := time.Duration(0), h.index > 0 && to.index > 0
	if far {
		delay = w.delay
	}
	if far && (w.apart[h] != w.apart[to] || random.Float64() < w.loss) {
		w.lost++
		return
	}
	select {
	case to.queues[h.index] <- packet{time.Now().Add(delay), data}:
		w.carried++
	default:
		w.lost++
	}
}

// deliver hands over what one sender sent, in its order.
func (h *host) deliver(queue chan packet) {
	for p := range queue {
		<-time.After(time.Until(p.due))
		if _, err := h.tun.Write(p.data); err != nil && err != syscall.EIO {
			continue // the device is closed, or full
		}
	}
}
