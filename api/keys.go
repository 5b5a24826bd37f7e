package api

import "time"

// KeySpec is what a key that is handed out may do. All but the name may be absent.
type KeySpec struct {
	// Name is how the key is called in logs and figures: 1 to 64 letters, digits,
	// . _ - : @
	Name string `json:"name"`

	// Routes are the models that it may use; absent = all.
	Routes []string `json:"routes,omitempty"`

	Team string `json:"team,omitempty"`

	// Expires is from when on it is refused; absent = never.
	Expires *time.Time `json:"expires,omitempty"`

	Limits *KeyLimits `json:"limits,omitempty"`
	Budget *KeyBudget `json:"budget,omitempty"`
}

// KeyLimits bounds a key; 0 = no limit.
type KeyLimits struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerMinute   int `json:"tokens_per_minute,omitempty"`
	Concurrency       int `json:"concurrency,omitempty"`
}

// KeyBudget is what a key may spend.
type KeyBudget struct {
	USD float64 `json:"usd"`

	// Per is day, week or month; absent = month.
	Per string `json:"per,omitempty"`

	// Warn is the share at which it is said; absent = 0.8.
	Warn float64 `json:"warn,omitempty"`

	// Then is refuse, warn or spill; absent = refuse.
	Then string `json:"then,omitempty"`

	// Spill is the route that requests go to, with then: spill.
	Spill string `json:"spill,omitempty"`
}

// Key is a key as it is listed: without its secret, which nobody keeps.
type Key struct {
	KeySpec

	// Source is file for a key of the configuration, which is changed there, and
	// store for one that was handed out.
	Source string `json:"source" enum:"file,store"`

	// State is active, expired or revoked.
	State string `json:"state" enum:"active,expired,revoked"`

	// Hint is how the secret begins; "" = not known.
	Hint string `json:"hint"`

	// Created and By are when and by whom the key was handed out, Revoked when it
	// was taken back; null = not so, or of a key of the configuration.
	Created *time.Time `json:"created"`
	By      string     `json:"by"`
	Revoked *time.Time `json:"revoked"`
}

// Keys are all keys, by name.
type Keys struct {
	Keys []Key `json:"keys"`
}

// NewKey is a key that was just made, with its secret, which is told this once.
type NewKey struct {
	Key    Key    `json:"key"`
	Secret string `json:"secret"`
}

// Rotation says how a key is rotated.
type Rotation struct {
	// GraceS is for how many seconds the old secret is taken as well.
	GraceS float64 `json:"grace_s"`
}

// Audit is who changed what, the latest first.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
}

// AuditEntry is one change.
type AuditEntry struct {
	// ID is of this entry alone; those of later changes are greater, as text.
	ID   string    `json:"id"`
	Time time.Time `json:"time"`

	// Who is the name of the token that was shown, or file for a change of the
	// configuration.
	Who string `json:"who"`

	// Did is what was done: key.create, key.rotate, key.revoke, backend.drain,
	// backend.resume or config.reload.
	Did string `json:"did"`

	// To is what it was done to.
	To string `json:"to"`
}
