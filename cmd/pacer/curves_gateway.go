package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds on the conversation with a gateway.
const (
	askTimeout = 10 * time.Second
	maxAnswer  = 64 << 20 // bytes; 1,000 targets at 512 levels are 40 MiB
)

// fromGateway asks the admin port: for the points, for the line between them,
// and for what the routes promise.
func (o *curvesOptions) fromGateway(ctx context.Context) (*curvesAnswer, error) {
	g, err := o.gateway()
	if err != nil {
		return nil, usageError{err}
	}
	answer := &curvesAnswer{}
	if err := g.get(ctx, "/api/v1/profiles", o.query(o.levels), answer); err != nil {
		return nil, err
	}
	var routes struct {
		Routes []struct {
			Model   string  `json:"model"`
			MinTPS  *figure `json:"min_tps"`
			Targets []struct {
				Backend string `json:"backend"`
				Model   string `json:"model"`
			} `json:"targets"`
		} `json:"routes"`
	}
	if err := g.get(ctx, "/api/v1/routes", nil, &routes); err != nil {
		return nil, err
	}
	top := 0
	for _, t := range answer.Targets {
		if t.Support != nil && (o.backend == "" || t.Backend == o.backend) {
			top = max(top, 2*t.Support[1])
		}
	}
	var lines curvesAnswer
	if top > 0 {
		if err := g.get(ctx, "/api/v1/profiles", o.query(lineLevels(top)), &lines); err != nil {
			return nil, err
		}
	}
	answer.From = g.base
	for i := range answer.Targets {
		t := &answer.Targets[i]
		if t.Points == nil {
			t.Points = []curvesPoint{}
		}
		t.Floors = []curvesFloor{}
		for _, r := range routes.Routes {
			for _, rt := range r.Targets {
				if r.MinTPS != nil && *r.MinTPS > 0 && rt.Backend == t.Backend && rt.Model == t.Model {
					t.Floors = append(t.Floors, curvesFloor{Route: r.Model, MinTPS: *r.MinTPS})
				}
			}
		}
		for _, l := range lines.Targets {
			if l.Backend == t.Backend && l.Model == t.Model && t.Support != nil {
				t.line = slices.DeleteFunc(l.Points, func(p curvesPoint) bool { return p.N > 2*t.Support[1] })
			}
		}
		t.explain(o, time.Now())
		t.measure()
	}
	return answer, nil
}

// query asks for levels at the prompt load of the options.
func (o *curvesOptions) query(levels []int) url.Values {
	q := url.Values{}
	if levels != nil {
		words := make([]string, len(levels))
		for i, n := range levels {
			words[i] = strconv.Itoa(n)
		}
		q.Set("n", strings.Join(words, ","))
	}
	if !math.IsNaN(o.rho) {
		q.Set("rho", strconv.FormatFloat(o.rho, 'g', -1, 64))
	}
	if !math.IsNaN(o.promptTokens) {
		q.Set("prompt_tokens", strconv.FormatFloat(o.promptTokens, 'g', -1, 64))
	}
	return q
}

// adminPort is the admin port of a running gateway.
type adminPort struct {
	base   string // without a slash at its end
	client *http.Client
}

func (o *curvesOptions) gateway() (*adminPort, error) {
	text := o.admin
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("--admin is no address of an admin port; write one such as %s", defaultAdmin)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: o.dial, DisableKeepAlives: true}
	return &adminPort{
		base: u.Scheme + "://" + u.Host + strings.TrimRight(u.Path, "/"),
		client: &http.Client{
			Transport: transport, Timeout: askTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// get decodes what the port answers.
func (g *adminPort) get(ctx context.Context, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := g.client.Do(request)
	if err != nil {
		return g.absent(ctx, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return g.absent(ctx, err)
	case len(body) > maxAnswer:
		return fmt.Errorf("%s%s: the answer is larger than %d MiB; ask for fewer levels with --n", g.base, path, maxAnswer>>20)
	}
	if response.StatusCode != http.StatusOK || json.Unmarshal(body, into) != nil {
		var refusal struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		why := "it has no " + path
		if json.Unmarshal(body, &refusal) == nil && refusal.Error.Message != "" {
			why = refusal.Error.Message
		}
		return fmt.Errorf("%s answers %s, but not as the admin port of a gateway does (%.200s); name that port with --admin http://HOST:PORT", g.base, response.Status, why)
	}
	return nil
}

// absent says that nobody is there, and what to do.
func (g *adminPort) absent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cause := err
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		cause = wrapped.Err
	}
	if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
		cause = fmt.Errorf("no answer within %v", askTimeout)
	}
	return fmt.Errorf("no gateway at %s: %w; start one with pacer serve, name its admin port with --admin http://HOST:PORT, or read the store with --config FILE", g.base, cause)
}
