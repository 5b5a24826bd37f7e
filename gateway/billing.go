package gateway

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/pacer-dev/pacer/config"
	"github.com/pacer-dev/pacer/internal/endpoint"
	"github.com/pacer-dev/pacer/profiles"
	"github.com/pacer-dev/pacer/usage"
)

// maxTag is how much of a tag's value is kept, in bytes.
const maxTag = 64

// bill is what a request has to do with money. The zero value is that of a
// request that nobody pays for.
type bill struct {
	tags   string     // as in usage.Of
	spill  string     // the route that its budget sends it to; "" = the one it names
	booked usage.Sums // what of it was added up before its end

	budgeted bool              // its key or team has a budget that may refuse it
	held     usage.Reservation // what it is expected to cost
	raised   time.Time         // when it was looked last whether it costs more
}

// raiseEvery is how often it is looked whether a request that runs costs more than it was
// expected to.
const raiseEvery = time.Second

// budgetError reports that the budget of a key or its team lets no request in.
type budgetError struct{ usage.Ruling }

func (e *budgetError) Error() string {
	return fmt.Sprintf("gateway: the budget of %s, %.2f USD a %s, %s", e.State.Holder, e.State.Budget.Limit.USD(), e.State.Budget.Per, map[bool]string{true: "is spent", false: "is held for requests that run"}[e.Exhausted])
}

// answer says when there is money again. A library would come back before that.
func (e *budgetError) answer() answer {
	whose := "this key"
	if e.State.Holder.Team {
		whose = "the team of this key"
	}
	limit := fmt.Sprintf("%.2f USD a %s", e.State.Budget.Limit.USD(), e.State.Budget.Per)
	if !e.Exhausted {
		return answer{
			status: 429, typ: "rate_limit_error", code: "budget_in_use", retryAfter: time.Second,
			message: fmt.Sprintf("What is left of the budget of %s, %s, is held for requests that run. What they do not need is free when they end.", whose, limit),
		}
	}
	return answer{
		status: 429, typ: "insufficient_quota", code: "insufficient_quota", noRetry: true,
		message: fmt.Sprintf("The budget of %s, %s, is spent until %s.", whose, limit, e.State.End.Format(time.RFC3339)),
	}
}

// afford looks at the budgets of the key and its team, before anything else is known of
// the request. The error is a *budgetError.
func (o *order) afford() error {
	if o.g.usage == nil || o.tenant.conf == nil {
		return nil
	}
	v := o.g.usage.Check(time.Now(), o.tenant.name, o.tenant.conf.Team)
	o.bill.budgeted = v.Budgeted
	return o.heed(v)
}

// heed has the request go where its budget sends it, or returns a *budgetError.
func (o *order) heed(v usage.Ruling) error {
	switch {
	case !v.Refuses():
	case v.State.Budget.Then == usage.Spill && o.setup.routes[v.State.Budget.Spill] != nil:
		o.bill.spill = v.State.Budget.Spill
	default:
		return &budgetError{v}
	}
	return nil
}

// reserve takes what the request is expected to cost on rt out of its budgets. The error
// is a *budgetError.
func (o *order) reserve(rt *route) error {
	if !o.bill.budgeted || o.bill.spill != "" {
		return nil
	}
	q := usage.Asked{Key: o.tenant.name, Team: o.tenant.conf.Team, Route: rt.name}
	q.Most, q.Guess = o.priced(rt)
	held, v := o.g.usage.Reserve(time.Now(), q)
	o.bill.held = held
	return o.heed(v)
}

// guessedAnswer is how many tokens an answer is taken to have of which nobody says anything,
// and guessedTime for how long it is taken to hold an engine that is paid by the hour.
const (
	guessedAnswer = 1024
	guessedTime   = 10 * time.Second
)

// priced is what the request costs at most on rt, 0 where nobody knows, and what may be
// guessed that it costs: at the dearest of its targets, with all tokens of the dearest sort.
func (o *order) priced(rt *route) (most, guess usage.Money) {
	r := &o.request
	o.estimatePrompt()
	prompt, sequences := int64(rt.prompt.apply(o.tenant.name, r.estimate)), int64(max(r.parsed.Sequences, 1))
	limit := int64(min(r.parsed.MaxTokens, maxAnswerTokens)) * sequences // 0 = the client does not say
	for _, target := range rt.conf.Targets {
		b := o.setup.backends[target.Backend]
		if b == nil {
			continue
		}
		p, ok := o.setup.conf.PriceOf(b.conf, config.Expand(target.Model, rt.name, r.parsed.Model))
		if !ok {
			guess = max(guess, usage.Dollars(b.conf.USDPerHour*guessedTime.Hours()))
			continue
		}
		dear := usage.Price{Input: max(p.Input, p.AudioInput), Output: max(p.Output, p.Reasoning, p.AudioOutput)}
		if limit > 0 {
			most = max(most, dear.Of(usage.Tokens{Input: 2 * prompt, Output: limit})) // a prompt is estimated
		}
		answer := cmp.Or(limit, guessedAnswer*sequences)
		if !r.end.Decodes {
			answer = 0
		}
		guess = max(guess, dear.Of(usage.Tokens{Input: prompt, Output: min(answer, guessedAnswer*sequences)}))
	}
	return most, guess
}

// runsUp has what the request costs so far be spent by nobody else, where that is more
// than it was expected to cost in all.
func (t *attempt) runsUp(now time.Time) {
	if !t.bill.held.Holds() || now.Sub(t.bill.raised) < raiseEvery {
		return
	}
	t.bill.raised = now
	tokens, end := t.used(now)
	if stream := t.measured.stream; stream != nil {
		shown := stream.Count()
		tokens.Output = max(tokens.Output, int64(shown.Tokens))
		tokens.Input = max(tokens.Input, int64(t.usedPrompt()))
	}
	t.g.usage.Raise(&t.bill.held, t.cost(tokens, end))
}

// letGoOfMoney gives back what is held for the request: it has ended, and was paid for.
func (o *order) letGoOfMoney() {
	if o.bill.held.Holds() {
		o.g.usage.Release(&o.bill.held)
	}
}

// spendSoFar adds up what a session has used so far. The error is a *budgetError, of a key
// or team that has nothing left.
func (t *attempt) spendSoFar(now time.Time) error {
	if t.g.usage == nil {
		return nil
	}
	tokens, end := t.used(now)
	t.spend(now, t.cost(tokens, end))
	if t.tenant.conf == nil {
		return nil
	}
	v := t.g.usage.Ended(now, t.tenant.name, t.tenant.conf.Team)
	there := t.bill.spill != "" && v.State.Budget.Then == usage.Spill && v.State.Budget.Spill == t.bill.spill
	if v.Exhausted && !there { // one that began where its budget sends it goes on
		return &budgetError{v}
	}
	return nil
}

// spend adds up what the request used, as far as it was not before.
func (t *attempt) spend(now time.Time, cost usage.Money) {
	if t.g.usage == nil || t.sentAt().IsZero() {
		return
	}
	m := &t.measured
	output := t.outputTokens()
	s := usage.Sums{Requests: 1, Output: int64(math.Round(output)), Cost: cost}
	s.Input = int64(t.paidPrompt())
	if m.hasUsage {
		s.Cached, s.Reasoning = int64(m.usage.CachedTokens), int64(m.usage.ReasoningTokens)
	}
	of := usage.Of{Key: t.tenant.name, Route: t.route.name, Backend: t.name(), Model: t.up.upModel(), Tags: t.bill.tags}
	if t.tenant.conf != nil {
		of.Team = t.tenant.conf.Team
	}
	more, had := s, t.bill.booked
	more.Requests -= had.Requests
	more.Input -= had.Input
	more.Cached -= had.Cached
	more.Output -= had.Output
	more.Reasoning -= had.Reasoning
	more.Cost -= had.Cost
	t.bill.booked = s
	t.g.usage.Book(usage.Record{At: now, Of: of, Sums: more}, &t.bill.held)
}

// upModel is the model that the backend was asked for.
func (u *roundTrip) upModel() string {
	model := u.target.Model
	if model == "" {
		model = u.request.parsed.Model
	}
	return model[:min(len(model), 256)]
}

// cost is what the request costs that ended at t: by the prices of its tokens, else by
// its part of the machine from when it was sent until end.
func (t *attempt) cost(s usage.Tokens, end time.Time) usage.Money {
	b := t.backend
	if b == nil {
		return 0
	}
	if p, ok := t.setup.conf.PriceOf(b.conf, t.up.upModel()); ok {
		return usage.Price(p).Of(s)
	}
	if t.g.usage == nil {
		return 0
	}
	return t.g.usage.OwnedCost(b.conf.Name, t.sentAt(), end)
}

// costHeader says what a document costs that is there as a whole.
func (t *attempt) costHeader(h http.Header) {
	if !t.answer.whole || t.kind != answerGood || !t.request.end.Decodes || t.answer.meter == nil {
		return
	}
	_, seen := t.answer.meter.End()
	if seen.Usage == nil {
		seen.Usage = t.answer.seen.Usage
	}
	if seen.Usage == nil || !t.request.believes(seen.Usage) {
		return
	}
	tokens := tokensOf((*profiles.Usage)(seen.Usage))
	if cost := t.cost(tokens, time.Now()); cost > 0 {
		h.Set("X-Pacer-Cost-Usd", formatUSD(cost))
		h.Set("X-Pacer-Tokens", formatTokens(&tokens))
	}
}

// costComment is what the request cost, as the comment behind the last event of a
// stream, where no reader of events looks; nil = nobody knows, or it is nothing.
func (t *attempt) costComment() []byte {
	if t.answer.form != formEvents || t.kind != answerGood || !t.request.end.Decodes || t.request.end.PartOf(endpoint.Google) { // its SDKs know no comments
		return nil
	}
	tokens, end := t.used(time.Now())
	cost := t.cost(tokens, end)
	if cost <= 0 {
		return nil
	}
	return fmt.Appendf(nil, ": x-pacer-cost-usd %s\n: x-pacer-tokens %s\n\n", formatUSD(cost), formatTokens(&tokens))
}

// used are the tokens of a request that ended at t, with what backends that died
// before gave, and when the last of them came; now if that is not known.
func (t *attempt) used(now time.Time) (usage.Tokens, time.Time) {
	m := &t.measured
	tokens := tokensOf(&m.usage)
	output, _ := m.billed()
	tokens.Input, tokens.Output = 0, int64(math.Round(t.up.onward.output(t, output)))
	tokens.Input = int64(t.paidPrompt())
	if !m.ended.IsZero() {
		now = m.ended
	}
	return tokens, now
}

func tokensOf(u *profiles.Usage) usage.Tokens {
	return usage.Tokens{
		Input: int64(u.PromptTokens), Cached: int64(u.CachedTokens), Output: int64(u.CompletionTokens), Reasoning: int64(u.ReasoningTokens),
		AudioInput: int64(u.AudioPromptTokens), AudioOutput: int64(u.AudioCompletionTokens),
	}
}

// formatTokens writes counts that are parts of others behind them.
func formatTokens(t *usage.Tokens) string {
	return fmt.Sprintf("input=%d cached=%d output=%d reasoning=%d", t.Input, t.Cached, t.Output, t.Reasoning)
}

// formatUSD writes an amount without an exponent: 0.000123.
func formatUSD(m usage.Money) string { return strconv.FormatFloat(m.USD(), 'f', -1, 64) }

// tag reads the tags of the request that the configuration allows: from a header
// of ours, else from the body's metadata, or its user.
func (o *order) tag() {
	names := o.setup.conf.Usage.Tags
	if len(names) == 0 || o.g.usage == nil {
		return
	}
	var b strings.Builder
	for _, name := range names {
		value := o.request.http.Header.Get("X-Pacer-Tag-" + name)
		if value == "" && o.request.body != nil && !o.request.parsed.Form() {
			path := "metadata." + name
			if name == "user" {
				path = "user"
			}
			value = gjson.GetBytes(o.request.body.bytes(), path).String()
		}
		if value == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(name + "=" + cleanTag(value))
	}
	o.bill.tags = b.String()
}

// cleanTag cuts a value, and takes out what would end it.
func cleanTag(value string) string {
	value = strings.ToValidUTF8(value[:min(len(value), maxTag)], "")
	return strings.Map(func(c rune) rune {
		if c == ',' || c == '=' || !unicode.IsPrint(c) {
			return '_'
		}
		return c
	}, value)
}

// spendable are the budgets of the keys and teams of c.
func spendable(c *config.Config) map[usage.Holder]usage.Budget {
	out := map[usage.Holder]usage.Budget{}
	add := func(team bool, name string, b config.Budget) {
		if b.USD <= 0 {
			return
		}
		then := usage.Refuse
		switch {
		case b.Then.Warn:
			then = usage.OnlySay
		case b.Then.Spill != "":
			then = usage.Spill
		}
		out[usage.Holder{Team: team, Name: name}] = usage.Budget{
			Limit: usage.Dollars(b.USD), Per: usage.PeriodOf(b.Per), Warn: b.Warn, Then: then, Spill: b.Then.Spill,
		}
	}
	for _, k := range c.Keys {
		add(false, k.Name, k.Budget)
	}
	for _, t := range c.Teams {
		add(true, t.Name, t.Budget)
	}
	return out
}

// ownedBackends are those that cost by the hour, and whose tokens have no price of
// their own.
func ownedBackends(c *config.Config) map[string]usage.Owned {
	out := map[string]usage.Owned{}
	for _, b := range c.Backends {
		if b.USDPerHour > 0 && b.Price == (config.Price{}) {
			out[b.Name] = usage.Owned{USDPerHour: b.USDPerHour}
		}
	}
	return out
}

// spills reports whether o goes to another route than it names, because its budget
// is spent.
func (o *order) spills(rt *route) bool {
	return o.bill.spill != "" && rt != nil && !slices.Contains(rt.conf.Models, o.bill.spill)
}
