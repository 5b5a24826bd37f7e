package config

import "time"

// Config is one pacer.yaml, complete and valid.
type Config struct {
	Listen   string
	Admin    Admin
	Store    Store
	Replicas int
	Log      Log
	TLS      TLS
	CORS     CORS
	Timeouts Timeouts
	Limits   Limits
	Backends []Backend
	Routes   []Route
	Keys     []Key

	// ExposeDecision sends the x-pacer-backend, -decision and -predicted-tps
	// headers although keys are configured. Without keys they are always sent.
	ExposeDecision bool

	// Warnings are what Parse wants said though it is no error.
	Warnings []string
}

// Secret is a string that never prints.
type Secret string

// String and GoString and LogValue hide the value; Reveal returns it.
func (Secret) String() string   { return "***" }
func (Secret) GoString() string { return "***" }

// Reveal returns the secret itself.
func (s Secret) Reveal() string { return string(s) }

type Admin struct {
	Listen string
	Token  Secret // "" = changing calls are refused
}

// Store says where curves and load are shared.
type Store struct {
	Memory   bool // no Redis
	Addrs    []string
	Master   string // Sentinel
	DB       int
	Prefix   string
	Username string
	Password Secret
	TLS      bool
}

type Log struct {
	Level  string // debug | info | warn | error
	Format string // json | text
}

type TLS struct{ Cert, Key string }

type CORS struct {
	Origins []string
	MaxAge  time.Duration
}

type Timeouts struct {
	Connect, FirstByte, Silence, Total, Write, Drain time.Duration
}

// Limits bounds what clients can make grow; sizes in bytes.
type Limits struct {
	Body, Header int64
	Streams      int
	Queue        int
	Buffered     int64
}

type Backend struct {
	Name           string
	URL            string // with /v1 or whatever the engine's prefix is; no trailing slash
	Kind           string
	APIKey         Secret
	Headers        map[string]Secret
	MaxConcurrency int
	Usage          string // inject | never
	CAFile         string
	Price          Price
	Labels         map[string]string
	Prior          Prior
}

// Price is in USD per million tokens.
type Price struct{ Input, Output float64 }

// Prior is what is believed of a backend's curve before any evidence.
type Prior struct {
	Preset string          // name of a published curve; "" = none
	Points map[int]float64 // n → tokens/s
}

type Route struct {
	Models       []string // "*" = whatever no other route names
	Class        string   // interactive | batch
	Targets      []Target
	SLO          SLO
	Prefer       string
	Reserve      int
	OnInfeasible []Step
}

type Target struct {
	Backend string
	Model   string // "" = the client's name goes up unchanged
}

type SLO struct {
	MinTPS     float64
	MaxTTFT    time.Duration
	Attainment float64
	Grace      time.Duration
}

// Step is one entry of on_infeasible: exactly one is set.
type Step struct {
	Queue      time.Duration
	Spill      string
	BestEffort bool
	Shed       bool
}

type Key struct {
	Name   string
	SHA256 [32]byte
	Routes []string // nil = all
	Allow  Allow
	Limits KeyLimits
}

// Allow says which wishes of a request the key may state beyond its route.
type Allow struct {
	Classes    []string
	MinTPSMax  float64
	MaxTTFTMin time.Duration
}

// KeyLimits bounds a key; 0 = no limit.
type KeyLimits struct {
	RequestsPerMinute, TokensPerMinute, Concurrency int
}

// Parse reads a configuration. name is used in messages; getenv looks up
// variables. The error is an Errors.
func Parse(name string, data []byte, getenv func(string) (string, bool)) (*Config, error) {
	panic("unwritten")
}

// Load reads and parses a file.
func Load(path string) (*Config, error) { panic("unwritten") }

// FromEnvironment builds the configuration of a start without a file:
// OPENAI_BASE_URL and OPENAI_API_KEY give one backend and a catch-all route.
func FromEnvironment(getenv func(string) (string, bool)) (*Config, error) { panic("unwritten") }

// Problem is one thing wrong with a file.
type Problem struct {
	File      string
	Line, Col int    // 1-based
	Message   string // what is wrong; what to write instead
}

// Errors is every problem of a file, by line.
type Errors []Problem

// Error returns one FILE:LINE:COL: message per line.
func (e Errors) Error() string { panic("unwritten") }
