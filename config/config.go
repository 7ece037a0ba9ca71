// Package config turns the environment and errand.yaml into one Config.
//
// It reports all problems at once, each with the variable or the line of errand.yaml and a remedy. It keeps secrets
// out of its output and errors, and reads only the files that it is given. It does not check that credentials work or
// servers answer: see `enqueue doctor`.
//
// Load is called once, at the start of a program, from one goroutine; a Config is plain data afterwards and is safe
// to share as long as it is not modified. MemoryAvailable can be called at any time. The package imports no other
// package of errand.
package config

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// The fixed time budgets. They must nest, so that a worker can stop in the middle of a run:
// Grace + Pack <= Drain < Shutdown < StopGrace.
const (
	// Grace bounds stopping a run, from the interrupt to the last KILL.
	Grace = 15 * time.Second
	// Pack bounds packing an interrupted run's clone for the worker that continues the run.
	Pack = 10 * time.Second
	// Drain bounds ending runs and packing their clones when a worker stops. The rest of Shutdown is for storing the
	// result.
	Drain = 45 * time.Second
	// Shutdown is asynq's ShutdownTimeout, after which asynq returns unfinished deliveries.
	Shutdown = 60 * time.Second
	// StopGrace is what a container's stop must allow before its KILL (stop_grace_period in docker-compose.yml).
	StopGrace = 90 * time.Second
)

// The compiler checks that they nest: a negative constant is no uint.
const _ = uint(Drain-Pack-Grace) + uint(Shutdown-Drain-1) + uint(StopGrace-Shutdown-1)

// Config is the configuration of a program. An empty group means that the feature is off. The tags of a field name its
// variable, its default and its check.
type Config struct {
	Redis   Redis
	Objects Objects
	Slack   Slack
	GitHub  GitHub
	Commits Commits
	Model   Model
	Cloud   Cloud
	HTTP    HTTP
	Fleet   Fleet
	Worker  Worker
	Paths   Paths
	Keep    Keep
	Traces  Traces
	Routing Routing // the content of errand.yaml

	// Given names the variables that were set, in the order of the fields. Print comments out all others.
	Given []string `env:"-"`

	Written []byte `env:"-"` // errand.yaml as it is; Where finds lines in it
}

// Objects is where values are that are too large for Redis: sessions, checkpoints, saved logs and pictures.
type Objects struct {
	// s3://bucket/prefix or file:///dir; empty: in Paths.State, so that other machines read only those in Redis
	URL string `env:"ERRAND_OBJECTS" check:"objects"`

	// The S3 client reads these itself, with AWS_ACCESS_KEY_ID. They are here because they must be redacted.
	SecretKey Secret `env:"AWS_SECRET_ACCESS_KEY"`
	Token     Secret `env:"AWS_SESSION_TOKEN"`
}

// Redis configures the connection to Redis.
type Redis struct {
	// may be empty for RoleStandalone, which then starts its own Redis
	URL RedisURL `env:"REDIS_URL"`
	// how many replicas must have a task or an ending before it counts as stored
	Replicas  int  `env:"ERRAND_REDIS_REPLICAS" envDefault:"0" check:"limit"`
	AllowOpen bool `env:"ERRAND_ALLOW_OPEN_REDIS" envDefault:"false"` // start even if Redis has no password

	// With TLS, for the Sentinels as well.

	// absolute; certificates of the CA that signed Redis' certificate; empty: those of the system
	CAFile   string `env:"ERRAND_REDIS_CA_FILE"`
	CertFile string `env:"ERRAND_REDIS_CERT_FILE"` // absolute; the client certificate, if Redis requires one
	KeyFile  string `env:"ERRAND_REDIS_KEY_FILE"`  // absolute; its private key
	CA       string `env:"-"`                      // content of the files
	Cert     string `env:"-"`
	Key      Secret `env:"-"`
}

// Slack configures the Slack source.
type Slack struct {
	// xoxb-…, posts messages
	BotToken Secret `env:"SLACK_BOT_TOKEN"`
	// verifies HTTP requests; front doors only
	SigningSecret Secret `env:"SLACK_SIGNING_SECRET"`
	// xapp-…, receives events in Socket Mode; front doors only
	AppToken Secret `env:"SLACK_APP_TOKEN"`
	// ends in a slash, as slack-go requires
	APIURL string `env:"SLACK_API_URL" envDefault:"https://slack.com/api/" check:"url /"`
}

// Enabled reports whether Slack is a source: it can post. Load has checked that a front door can receive events.
func (s Slack) Enabled() bool { return s.BotToken != "" }

// GitHub configures the GitHub source and forge.
type GitHub struct {
	// a user's token; the App below is the alternative
	Token Secret `env:"GITHUB_TOKEN"`
	AppID int64  `env:"GITHUB_APP_ID"` // 0 = no App
	// in PEM; the variable has the key itself, where \n may replace a line end, or the absolute path of its file
	AppKey     Secret `env:"GITHUB_APP_PRIVATE_KEY"`
	AppKeyFile string `env:"-"` // empty: the variable had the key itself
	// a front door with GitHub has it or Poll: go-github takes unsigned events without one; workers need none
	WebhookSecret Secret `env:"GITHUB_WEBHOOK_SECRET"`
	// between two polls for comments, reviews and pushes; 0 = webhooks bring them
	Poll time.Duration `env:"GITHUB_POLL" check:"limit"`
	// ends in a slash, as go-github requires
	APIURL string `env:"GITHUB_API_URL" envDefault:"https://api.github.com/" check:"url /"`
	// base of clone URLs, without a trailing slash
	URL string `env:"GITHUB_URL" envDefault:"https://github.com" check:"url"`
}

// Traces configures the export of traces, by OpenTelemetry's variables.
type Traces struct {
	// of an OTLP receiver over HTTP, without /v1/traces
	Endpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" check:"url"`
	// for it: name=value, percent-encoded, with commas between them
	Headers Secret `env:"OTEL_EXPORTER_OTLP_HEADERS" check:"headers"`
}

// URL returns where traces are sent; empty = no traces.
func (t Traces) URL() string {
	if t.Endpoint == "" {
		return ""
	}
	return t.Endpoint + "/v1/traces"
}

// Enabled reports whether GitHub is a source: it has an identity. Load has checked that a front door can verify events.
func (g GitHub) Enabled() bool { return g.Token != "" || g.IsApp() }

// IsApp reports whether the identity is a GitHub App and not a user's token.
func (g GitHub) IsApp() bool { return g.AppID != 0 && g.AppKey != "" }

// Model configures access to the model. One of the credentials is enough; the agent chooses between several.
type Model struct {
	// sent as x-api-key
	APIKey Secret `env:"ANTHROPIC_API_KEY"`
	// a bearer token, as gateways expect it
	AuthToken Secret `env:"ANTHROPIC_AUTH_TOKEN"`
	// of a Claude subscription
	OAuthToken Secret `env:"CLAUDE_CODE_OAUTH_TOKEN"`
	// further headers of requests: Name: value, each on its own line or after \n
	Headers Secret `env:"ANTHROPIC_CUSTOM_HEADERS"`
	// prints a bearer token, instead of the other credentials
	TokenCommand string `env:"ERRAND_MODEL_TOKEN_COMMAND"`
	// without a slash at the end
	BaseURL string `env:"ANTHROPIC_BASE_URL" envDefault:"https://api.anthropic.com" check:"url"`
	// a gateway between the fleet and every provider, instead of the providers' own URLs
	Upstream string `env:"ERRAND_GATEWAY_UPSTREAM" check:"url"`
	Gateway  string `env:"ERRAND_GATEWAY" envDefault:"on" check:"oneof on off"` // GatewayOn or GatewayOff
	// model that the CLI uses; empty = the CLI's default
	Name string `env:"ERRAND_MODEL"`

	// What the provider calls the models that people choose by these names; empty = as the CLI says.
	Opus   string `env:"ANTHROPIC_DEFAULT_OPUS_MODEL"`
	Sonnet string `env:"ANTHROPIC_DEFAULT_SONNET_MODEL"`
	Haiku  string `env:"ANTHROPIC_DEFAULT_HAIKU_MODEL"` // also for small jobs, such as fetched pages
}

// Cloud selects a cloud that offers the model, by the CLI's own variables. At most one of them is used. Other variables
// that the SDKs of the clouds read, such as AWS_PROFILE and GOOGLE_APPLICATION_CREDENTIALS, work as well.
type Cloud struct {
	Bedrock    bool   `env:"CLAUDE_CODE_USE_BEDROCK" envDefault:"false"`
	Region     string `env:"AWS_REGION"`                             // empty = as AWS' own files say
	BedrockURL string `env:"ANTHROPIC_BEDROCK_BASE_URL" check:"url"` // instead of the region's
	// an API key of Bedrock, instead of AWS credentials
	BedrockKey Secret `env:"AWS_BEARER_TOKEN_BEDROCK"`

	Vertex        bool   `env:"CLAUDE_CODE_USE_VERTEX" envDefault:"false"`
	VertexProject string `env:"ANTHROPIC_VERTEX_PROJECT_ID"`
	VertexRegion  string `env:"CLOUD_ML_REGION"`                       // such as europe-west1, eu or global
	VertexURL     string `env:"ANTHROPIC_VERTEX_BASE_URL" check:"url"` // instead of the region's, with /v1

	Foundry         bool   `env:"CLAUDE_CODE_USE_FOUNDRY" envDefault:"false"`
	FoundryResource string `env:"ANTHROPIC_FOUNDRY_RESOURCE"`
	FoundryURL      string `env:"ANTHROPIC_FOUNDRY_BASE_URL" check:"url"` // instead of the resource's
	FoundryKey      Secret `env:"ANTHROPIC_FOUNDRY_API_KEY"`              // instead of Entra ID
	// for Entra ID. Azure's SDK reads it itself; it is here because it must be redacted
	AzureSecret Secret `env:"AZURE_CLIENT_SECRET"`
}

// Used names the variable of the cloud that is used; empty = none.
func (c Cloud) Used() string {
	switch {
	case c.Bedrock:
		return "CLAUDE_CODE_USE_BEDROCK"
	case c.Vertex:
		return "CLAUDE_CODE_USE_VERTEX"
	case c.Foundry:
		return "CLAUDE_CODE_USE_FOUNDRY"
	}
	return ""
}

// The values of Model.Gateway.
const (
	GatewayOn  = "on"  // the worker keeps the credential and forwards each run's requests to the model
	GatewayOff = "off" // each run gets the credential, and its tools can read it
)

// HTTP configures the front door: webhooks, API and console.
type HTTP struct {
	// host:port; port 0 = any free one
	Addr string `env:"ERRAND_HTTP_ADDR" envDefault:"127.0.0.1:8080" check:"addr"`
	// URL of the console for users, without a trailing slash; empty = posts do not link to it
	PublicURL string `env:"ERRAND_PUBLIC_URL" check:"url"`
	// may be empty for RoleWorker, and for RoleStandalone, which generates one
	ConsoleToken Secret `env:"ERRAND_CONSOLE_TOKEN" check:"token"`
	// header with the user's name, set by an authenticating proxy; empty = no proxy
	ProxyHeader string `env:"ERRAND_TRUSTED_PROXY_HEADER"`
	// header with the user's groups, set by the same proxy; empty = none
	ProxyGroups string   `env:"ERRAND_TRUSTED_PROXY_GROUPS"`
	Proxies     Networks `env:"ERRAND_TRUSTED_PROXIES"` // addresses of that proxy
	// of errand as a client of the provider in errand.yaml
	LoginSecret Secret `env:"ERRAND_LOGIN_SECRET"`
	// how long a posted link opens its task without a login; 0 = not at all
	LinkDays int `env:"ERRAND_LINK_DAYS" envDefault:"7" check:"limit"`
}

// Worker configures workers.
type Worker struct {
	// host:port of health, metrics and logs; port 0 = any free one
	Addr string `env:"ERRAND_WORKER_ADDR" envDefault:"127.0.0.1:8081" check:"addr"`
	// URL of Addr for other machines, without a trailing slash; empty = made from Addr
	URL string `env:"ERRAND_WORKER_URL" check:"url"`
	// the CLI: an absolute path, or a name to find on PATH
	Claude string `env:"ERRAND_CLAUDE" envDefault:"claude"`
	// SandboxAuto, SandboxBwrap or SandboxNone
	Sandbox   string `env:"ERRAND_SANDBOX" envDefault:"auto" check:"oneof auto bwrap none"`
	AllowRoot bool   `env:"ERRAND_ALLOW_ROOT" envDefault:"false"` // start even as root
	// whose tasks it takes; see Repository.Pool
	Pool string `env:"ERRAND_POOL" envDefault:"default" check:"pool"`
	// runs at once, at least 2; the default follows the memory
	Concurrency int           `env:"ERRAND_CONCURRENCY"`
	RunLimit    time.Duration `env:"ERRAND_RUN_LIMIT" envDefault:"2h" check:"limit"` // longest run; 0 = no limit
	// longest silence of a run; 0 = no limit
	IdleLimit time.Duration `env:"ERRAND_IDLE_LIMIT" envDefault:"15m" check:"limit"`
	// of a run, of all its processes together, in 2^30 bytes; 0 = no limit
	MemoryGB int `env:"ERRAND_RUN_MEMORY_GB" envDefault:"8" check:"limit"`
	// that a run adds, in 2^30 bytes; 0 = no limit
	DiskGB int `env:"ERRAND_RUN_DISK_GB" envDefault:"20" check:"limit"`
	// of a run, with their threads: the CLI and one tool need 50; 0 = no limit
	Processes int        `env:"ERRAND_RUN_PROCESSES" envDefault:"2000" check:"limit 50"`
	LogLevel  slog.Level `env:"ERRAND_LOG_LEVEL" envDefault:"info"`
}

// The values of Worker.Sandbox.
const (
	SandboxAuto  = "auto"  // bubblewrap; if it does not work, the worker does not start
	SandboxBwrap = "bwrap" // bubblewrap; while it does not work, no run starts
	SandboxNone  = "none"  // no sandbox: the start logs what agents can reach
)

// Paths are the locations on disk. All are absolute and clean.
type Paths struct {
	File string `env:"ERRAND_CONFIG" envDefault:"errand.yaml"` // errand.yaml; empty if it does not exist
	// logs, mirrors, clones; created on first use
	State string `env:"ERRAND_STATE_DIR" envDefault:".errand"`
	// roots below which a task may name a local directory
	Dirs []string `env:"ERRAND_DIRS" envSeparator:":" check:"dirs"`
	// hidden paths that sandboxed runs may read, such as toolchains in a home directory
	Shown []string `env:"ERRAND_SANDBOX_SHOW" envSeparator:":" check:"dirs"`
}

// Role is the kind of program that loads the configuration. It only decides which settings are required.
type Role string

// The roles.
const (
	RoleWorker    Role = "worker"    // drains the queues: needs Redis and the model
	RoleFrontdoor Role = "frontdoor" // `enqueue serve`: needs Redis and a console token
	// both in one process: needs the model; starts a Redis and generates a token if none is set
	RoleStandalone Role = "standalone"
)

// runs reports whether the role starts the CLI.
func (r Role) runs() bool { return r == RoleWorker || r == RoleStandalone }

// Fleet holds settings that the processes of a fleet share.
type Fleet struct {
	Name string `env:"ERRAND_FLEET_NAME" envDefault:"errand"` // part of the identity of the data in Redis
	// gives access to /metrics only; empty = workers serve no metrics, and front doors require the console token
	MetricsToken Secret `env:"ERRAND_METRICS_TOKEN" check:"token"`
}

// FleetToken returns the token that front doors present to workers. It is derived from the Redis password, which all of
// them have and which cannot be derived from it. Without a password it is empty, and workers serve no logs.
func (c Config) FleetToken() Secret {
	passwords := c.Redis.URL.secrets()
	if len(passwords) == 0 || passwords[0] == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(passwords[0]))
	_, _ = mac.Write([]byte("errand fleet token")) // a hash never fails
	return Secret(hex.EncodeToString(mac.Sum(nil)))
}

// Keep limits what a worker's disk keeps of unused logs and clones, in 10^9 bytes. 0 = no limit.
type Keep struct {
	LogsGB   int `env:"ERRAND_KEEP_LOGS_GB" envDefault:"5" check:"limit"`
	ClonesGB int `env:"ERRAND_KEEP_CLONES_GB" envDefault:"50" check:"limit"`
}

// Problem is one configuration error with its remedy.
type Problem struct {
	Where  string // the variable, or file:line
	What   string // continues Where: `is not set`
	Remedy string // an instruction: `set it to …`; empty if What says enough
}

// String returns the problem as one sentence.
func (p Problem) String() string {
	if p.Remedy == "" {
		return p.Where + " " + p.What
	}
	return p.Where + " " + p.What + "; " + p.Remedy
}

// Problems is the error of Load: every problem, in the order of the variables. It contains no secret.
type Problems []Problem

// Error lists the problems, one per line.
func (ps Problems) Error() string {
	text := fmt.Sprintf("configuration: %d problems", len(ps))
	if len(ps) == 1 {
		text = "configuration: 1 problem"
	}
	for _, p := range ps {
		text += "\n  - " + p.String()
	}
	return text
}

func (ps *Problems) add(where, what, remedy string) {
	*ps = append(*ps, Problem{Where: where, What: what, Remedy: remedy})
}

// Has reports whether there is a problem with a variable, so that its consequences need not be reported.
func (ps Problems) Has(where string) bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return p.Where == where })
}

// err returns the problems as an error, or nil.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}
