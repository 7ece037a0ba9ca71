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

	"go.yaml.in/yaml/v3"
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

// Config is the configuration of a program. An empty group means that the feature is off.
//
// Its fields are the table of the settings. The tags of each name its variable, its default and its check, and explain
// it to operators. The printed configuration, .env.example, docs/settings.md, the Configuration page and the hints at
// wrong names are made of them.
type Config struct {
	Redis   Redis   `help:"Redis: where tasks, claims and sessions live"`
	Objects Objects `help:"Objects: storage for values that are too large for Redis"`
	Slack   Slack   `help:"Slack: optional"`
	GitHub  GitHub  `help:"GitHub: optional"`
	Commits Commits `help:"Commits that workers publish"`
	Model   Model   `help:"Model: one credential or cloud is enough; docs/models.md shows each"`
	Cloud   Cloud   `help:"Cloud: at most one, instead of a credential above"`
	HTTP    HTTP    `help:"HTTP: webhooks, API and console"`
	Fleet   Fleet   `help:"Fleet: what all processes share"`
	Worker  Worker  `help:"Worker: how it runs tasks"`
	Paths   Paths   `help:"Paths"`
	Keep    Keep    `help:"Keep: when a worker removes unused files from its disk, oldest first; 0: of any size"`
	Traces  Traces  `help:"Traces: optional"`
	Routing Routing // the content of errand.yaml

	// Given names the variables that were set, in the order of the fields. Print comments out all others.
	Given []string `env:"-"`

	// Document is errand.yaml, in which Problem finds lines; nil: it cannot be read, or has nothing.
	Document *yaml.Node `env:"-"`
}

// Objects is where values are that are too large for Redis: sessions, checkpoints, saved logs and pictures.
type Objects struct {
	URL string `env:"ERRAND_OBJECTS" check:"objects" help:"The address: s3://BUCKET/PREFIX, on AWS or with ?endpoint=https://minio.example.com:9000&region=us-east-1 on any server that speaks S3, or file:///DIRECTORY for a directory that all machines share. Unset: below ERRAND_STATE_DIR, and in Redis up to 1 MiB (docs/redis.md)."`

	// The S3 client reads these itself, with AWS_ACCESS_KEY_ID. They are here because they must be redacted.
	SecretKey Secret `env:"AWS_SECRET_ACCESS_KEY" help:"The credential for S3, with AWS_ACCESS_KEY_ID. Unset: AWS' file of shared credentials, a web identity token, or the role of the machine."`
	Token     Secret `env:"AWS_SESSION_TOKEN" help:"The session token of a temporary credential for S3."`
}

// Redis configures the connection to Redis.
type Redis struct {
	URL       RedisURL `env:"REDIS_URL" help:"The address: redis://:PASSWORD@HOST:6379/0, or rediss:// for TLS; special characters of the password percent-encoded. With Sentinels: redis+sentinel://:PASSWORD@HOST:26379,HOST:26379/0?master=NAME, or rediss+sentinel:// (docs/redis.md). Without it, 'worker -standalone' starts a redis-server. Compose sets it."`
	Password  Secret   `env:"REDIS_PASSWORD" help:"Only for Compose: the password of its Redis. Letters and digits, such as the output of 'openssl rand -hex 24'."` // no program reads it
	Replicas  int      `env:"ERRAND_REDIS_REPLICAS" envDefault:"0" check:"limit" help:"How many replicas of Redis must have an event, a task, an answer or an ending before errand confirms it. 0: a fail-over can lose the last ones."`
	AllowOpen bool     `env:"ERRAND_ALLOW_OPEN_REDIS" envDefault:"false" help:"true: start even if Redis needs no password. Everything that can connect to it, including the agents' tools, can then control the fleet."`

	// With TLS, for the Sentinels as well. The paths are absolute.

	CAFile   string `env:"ERRAND_REDIS_CA_FILE" help:"The file with the certificate of a private CA, with TLS."`
	CertFile string `env:"ERRAND_REDIS_CERT_FILE" help:"The file with the client certificate, if Redis requires one."`
	KeyFile  string `env:"ERRAND_REDIS_KEY_FILE" help:"The file with the client certificate's private key."`
	CA       string `env:"-"` // content of the files
	Cert     string `env:"-"`
	Key      Secret `env:"-"`
}

// Slack configures the Slack source.
type Slack struct {
	BotToken      Secret `env:"SLACK_BOT_TOKEN" help:"The bot token (xoxb-…)."`
	SigningSecret Secret `env:"SLACK_SIGNING_SECRET" help:"The secret that verifies Slack's requests to /slack/events. The bot token requires this or SLACK_APP_TOKEN."`
	AppToken      Secret `env:"SLACK_APP_TOKEN" help:"If Slack cannot reach errand: the app-level token (xapp-…, scope connections:write) for Socket Mode."`
	APIURL        string `env:"SLACK_API_URL" envDefault:"https://slack.com/api/" check:"url /" help:"Base URL of the Web API."`
}

// Enabled reports whether Slack is a source: it can post. Load has checked that a front door can receive events.
func (s Slack) Enabled() bool { return s.BotToken != "" }

// GitHub configures the GitHub source and forge.
type GitHub struct {
	Token      Secret `env:"GITHUB_TOKEN" help:"The token of errand's user. Use either this or a GitHub App."`
	AppID      int64  `env:"GITHUB_APP_ID" help:"The ID of a GitHub App, instead of a token."`
	AppKey     Secret `env:"GITHUB_APP_PRIVATE_KEY" help:"The App's private key: the absolute path of its file or, under Compose and where agents without a sandbox could read a file, the key itself. One line with \\n for each line end, in single quotes: '-----BEGIN RSA PRIVATE KEY-----\\nMIIE…\\n-----END RSA PRIVATE KEY-----\\n'."`
	AppKeyFile string `env:"-"` // empty: the variable had the key itself
	// A front door with GitHub has it or Poll: go-github takes unsigned events without one. Workers need none.
	WebhookSecret Secret        `env:"GITHUB_WEBHOOK_SECRET" help:"The secret of the webhook: a long random string, the same on GitHub."`
	Poll          time.Duration `env:"GITHUB_POLL" check:"limit" help:"Where GitHub cannot reach errand: how often it asks for comments, reviews and pushes, like 20s, in the repositories of errand.yaml. Unset: webhooks bring them."`
	APIURL        string        `env:"GITHUB_API_URL" envDefault:"https://api.github.com/" check:"url /" help:"Base URL of the REST API; for an enterprise server https://HOST/api/v3/."`
	URL           string        `env:"GITHUB_URL" envDefault:"https://github.com" check:"url" help:"Base URL of clones."`
}

// Traces configures the export of traces, by OpenTelemetry's variables.
type Traces struct {
	Endpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" check:"url" help:"A receiver of OTLP over HTTP, such as an OpenTelemetry Collector at http://localhost:4318. Workers send it one trace for each task."`
	Headers  Secret `env:"OTEL_EXPORTER_OTLP_HEADERS" check:"headers" help:"Headers for it, such as a token: name=value, with commas between them. Values are percent-encoded: Authorization=Basic%20abc."`
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
	APIKey       Secret `env:"ANTHROPIC_API_KEY" help:"A key of the Anthropic API."`
	AuthToken    Secret `env:"ANTHROPIC_AUTH_TOKEN" help:"Instead of a key: a bearer token, for gateways."`
	OAuthToken   Secret `env:"CLAUDE_CODE_OAUTH_TOKEN" help:"Instead of a key: the token of a Claude subscription, from 'claude setup-token'."`
	Headers      Secret `env:"ANTHROPIC_CUSTOM_HEADERS" help:"Further headers of requests to the model, as gateways want them: Name: value, with \\n between several."`
	TokenCommand string `env:"ERRAND_MODEL_TOKEN_COMMAND" help:"Instead of a key: a program with arguments between spaces, without a shell, that prints a token. It is run again every 5 minutes, and when a token is refused."`
	BaseURL      string `env:"ANTHROPIC_BASE_URL" envDefault:"https://api.anthropic.com" check:"url" help:"A gateway in front of the API. If it is set, the credential is optional."`
	Gateway      string `env:"ERRAND_GATEWAY" envDefault:"on" check:"oneof on off" help:"on: the worker keeps the credential and forwards each run's requests to the model; off: each run gets the credential. Use off for a credential that only the CLI's own requests may carry; the agent's tools can then read it (docs/threats.md)."`
	Name         string `env:"ERRAND_MODEL" help:"The model of runs for which nobody names another (docs/configure.md). Unset: the CLI's default."`

	// What the provider calls the models that people choose by these names; empty = as the CLI says.
	Opus   string `env:"ANTHROPIC_DEFAULT_OPUS_MODEL" help:"What the provider calls the model that people choose as opus. Unset: as the CLI says."`
	Sonnet string `env:"ANTHROPIC_DEFAULT_SONNET_MODEL" help:"What the provider calls sonnet."`
	Haiku  string `env:"ANTHROPIC_DEFAULT_HAIKU_MODEL" help:"What the provider calls haiku, which also does small jobs, such as fetched pages."`
}

// Cloud selects a cloud that offers the model, by the CLI's own variables. At most one of them is used. Other variables
// that the SDKs of the clouds read, such as AWS_PROFILE and GOOGLE_APPLICATION_CREDENTIALS, work as well.
type Cloud struct {
	Bedrock    bool   `env:"CLAUDE_CODE_USE_BEDROCK" envDefault:"false" help:"true: use Amazon Bedrock, with AWS credentials."`
	Region     string `env:"AWS_REGION" help:"The region of Bedrock. Unset: that of AWS' own files."`
	BedrockURL string `env:"ANTHROPIC_BEDROCK_BASE_URL" check:"url" help:"An endpoint instead of the region's."`
	BedrockKey Secret `env:"AWS_BEARER_TOKEN_BEDROCK" help:"An API key of Bedrock, instead of AWS credentials."`

	Vertex        bool   `env:"CLAUDE_CODE_USE_VERTEX" envDefault:"false" help:"true: use Google Vertex AI."`
	VertexProject string `env:"ANTHROPIC_VERTEX_PROJECT_ID" help:"The project of Vertex AI."`
	VertexRegion  string `env:"CLOUD_ML_REGION" help:"The region of Vertex AI, such as europe-west1, eu or global."`
	VertexURL     string `env:"ANTHROPIC_VERTEX_BASE_URL" check:"url" help:"An endpoint instead of the region's, with /v1."`

	Foundry         bool   `env:"CLAUDE_CODE_USE_FOUNDRY" envDefault:"false" help:"true: use Microsoft Foundry."`
	FoundryResource string `env:"ANTHROPIC_FOUNDRY_RESOURCE" help:"The resource of Foundry."`
	FoundryURL      string `env:"ANTHROPIC_FOUNDRY_BASE_URL" check:"url" help:"An endpoint instead of the resource's."`
	FoundryKey      Secret `env:"ANTHROPIC_FOUNDRY_API_KEY" help:"An API key of Foundry, instead of Entra ID."`
	AzureSecret     Secret `env:"AZURE_CLIENT_SECRET" help:"The client's secret for Entra ID, which Azure's SDK reads."`
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
	Addr string `env:"ERRAND_HTTP_ADDR" envDefault:"127.0.0.1:8080" check:"addr" help:"The address to listen on; under Compose the one that is published on the host. 0.0.0.0:8080 for all interfaces."`
	// URL of the console for users, without a trailing slash; empty = posts do not link to it
	PublicURL    string   `env:"ERRAND_PUBLIC_URL" check:"url" help:"The URL for people, used in posted links to the page of a task, like https://errand.example.com. Unset: no links."`
	ConsoleToken Secret   `env:"ERRAND_CONSOLE_TOKEN" check:"token" help:"The token for console, API, queues and metrics. 'worker -standalone' creates and prints one if it is unset; 'enqueue serve' requires it."`
	ProxyHeader  string   `env:"ERRAND_TRUSTED_PROXY_HEADER" help:"The header with the name of people who have logged in at a proxy in front, like X-Forwarded-User. It is ignored from other addresses than the proxy's."`
	ProxyGroups  string   `env:"ERRAND_TRUSTED_PROXY_GROUPS" help:"The proxy's header with the person's groups, like X-Forwarded-Groups, for roles: in errand.yaml."`
	Proxies      Networks `env:"ERRAND_TRUSTED_PROXIES" help:"The addresses that the proxy connects from, like 192.0.2.7 or 198.51.100.0/24, separated by commas. Everything that can connect from them can claim any name: list the proxy, not the network of the workers (docs/security.md)."`
	LoginSecret  Secret   `env:"ERRAND_LOGIN_SECRET" help:"The client secret for login: in errand.yaml."`
	LinkDays     int      `env:"ERRAND_LINK_DAYS" envDefault:"7" check:"limit" help:"How many days a link that errand posts in Slack opens its task, read-only and without a login; 0: never. Only where people cannot log in by login: or a proxy."`
}

// Worker configures workers.
type Worker struct {
	Addr string `env:"ERRAND_WORKER_ADDR" envDefault:"127.0.0.1:8081" check:"addr" help:"The worker's address for /livez and /readyz and, with a token, /metrics and /logs."`
	// URL of Addr for other machines, without a trailing slash; empty = made from Addr
	URL    string `env:"ERRAND_WORKER_URL" check:"url" help:"The worker's URL for other machines, like http://10.0.0.7:8081. Unset: derived from the address; a loopback address works only on this machine."`
	Claude string `env:"ERRAND_CLAUDE" envDefault:"claude" help:"The Claude Code CLI: a path, or a name on PATH. 'make run' puts the pinned one first on PATH."`
	// SandboxAuto, SandboxBwrap or SandboxNone
	Sandbox     string        `env:"ERRAND_SANDBOX" envDefault:"auto" check:"oneof auto bwrap none" help:"The sandbox of the agent's tools: auto (bubblewrap; the worker does not start without it), bwrap (the worker starts but runs nothing without it) or none. Without a sandbox the tools can read and change whatever the worker's user can, so people who may not read every repository under repositories: get runs that only read. docs/security.md says what a container needs for it."`
	Alone       bool          `env:"-"` // it takes one task and has its container alone; see RoleOnce
	AllowRoot   bool          `env:"ERRAND_ALLOW_ROOT" envDefault:"false" help:"true: permit a worker to run as root. Its agents can then read root's files."`
	Pool        string        `env:"ERRAND_POOL" envDefault:"default" check:"pool" help:"The pool of the worker: it runs only the tasks of repositories with this pool: in errand.yaml. At most 30 characters of a-z, 0-9 and -. The worker of tasks without a pool, and of those without a repository, is in the pool default."`
	Concurrency int           `env:"ERRAND_CONCURRENCY" help:"The maximum number of concurrent runs, as far as memory permits. Unset: by available memory, about 350 MB a run, and at most 4. At least 2, so that people never wait behind a review."`
	RunLimit    time.Duration `env:"ERRAND_RUN_LIMIT" envDefault:"2h" check:"limit" help:"The longest time of a run. 0s: no limit."`
	IdleLimit   time.Duration `env:"ERRAND_IDLE_LIMIT" envDefault:"15m" check:"limit" help:"The longest time of a run without activity. 0s: no limit."`
	MemoryGB    int           `env:"ERRAND_RUN_MEMORY_GB" check:"limit" help:"The maximum memory of all processes of a run together, in GiB; a run with more is ended, so that other runs keep theirs. Unset: three quarters of the memory of the machine or container, and at most 8. 0: no limit."`
	DiskGB      int           `env:"ERRAND_RUN_DISK_GB" envDefault:"20" check:"limit" help:"The maximum that a run adds to the disk, in GiB; a run that adds more is ended. Give the disk room for that many for each run. 0: no limit."`
	Processes   int           `env:"ERRAND_RUN_PROCESSES" envDefault:"2000" check:"limit 50" help:"The maximum number of processes and threads of a run; a run with more is ended, so that a fork bomb does not affect other runs. Give the container or unit a higher limit than that for each of its runs. 0: no limit."`
	LogLevel    slog.Level    `env:"ERRAND_LOG_LEVEL" envDefault:"info" help:"debug, info, warn or error. The log is text on a terminal, and otherwise JSON."`
}

// The values of Worker.Sandbox.
const (
	SandboxAuto  = "auto"  // bubblewrap; if it does not work, the worker does not start
	SandboxBwrap = "bwrap" // bubblewrap; while it does not work, no run starts
	SandboxNone  = "none"  // no sandbox: the start logs what agents can reach
)

// Paths are the locations on disk. All are absolute and clean.
type Paths struct {
	File  string   `env:"ERRAND_CONFIG" envDefault:"errand.yaml" help:"The file with repositories, limits and rules: see errand.example.yaml. Unset: errand.yaml in the working directory, if it exists. Compose requires it to exist; /dev/null means none."`
	State string   `env:"ERRAND_STATE_DIR" envDefault:".errand" help:"Logs, mirrors and clones. Compose keeps them in a volume."`
	Dirs  []string `env:"ERRAND_DIRS" envSeparator:":" check:"dirs" help:"Local directories that tasks can work in, with everything below them: absolute paths, separated by colons. Unset: none."`
	Shown []string `env:"ERRAND_SANDBOX_SHOW" envSeparator:":" check:"dirs" help:"Paths in the home directories and /run that runs in a sandbox can read, such as toolchains: absolute paths, separated by colons. They see nothing else there, except the directories in PATH."`
}

// Role is the kind of program that loads the configuration. It only decides which settings are required.
type Role string

// The roles.
const (
	RoleWorker    Role = "worker"    // drains the queues: needs Redis and the model
	RoleOnce      Role = "once"      // a worker that takes one task; only programs know it
	RoleFrontdoor Role = "frontdoor" // `enqueue serve`: needs Redis and a console token
	// both in one process: needs the model; starts a Redis and generates a token if none is set
	RoleStandalone Role = "standalone"
)

// runs reports whether the role starts the CLI.
func (r Role) runs() bool { return r == RoleWorker || r == RoleStandalone }

// Fleet holds settings that the processes of a fleet share.
type Fleet struct {
	Name         string `env:"ERRAND_FLEET_NAME" envDefault:"errand" help:"The name of the fleet. It belongs to the identity of the data in Redis: a process with another one does not start."`
	MetricsToken Secret `env:"ERRAND_METRICS_TOKEN" check:"token" help:"The token for /metrics of workers and front doors, and nothing else. Unset: workers serve no metrics, and front doors require the console token."`
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
	LogsGB   int `env:"ERRAND_KEEP_LOGS_GB" envDefault:"5" check:"limit" help:"The GB of logs of runs, and of work saved from clones. What was not written to for 30 days is removed as well."`
	ClonesGB int `env:"ERRAND_KEEP_CLONES_GB" envDefault:"50" check:"limit" help:"The GB of directories of threads, with their clones. Those without a run for 7 days are removed as well."`
}

// Problem is one configuration error with its remedy.
type Problem struct {
	Where  string // the variable, or file:line
	What   string // continues Where: `is not set`
	Remedy string // an instruction: `set it to …`; empty if What says enough
	Line   int    // of errand.yaml; 0: none
}

// String returns the problem as one sentence.
func (p Problem) String() string {
	if p.Remedy == "" {
		return p.Where + " " + p.What
	}
	return p.Where + " " + p.What + "; " + p.Remedy
}

// Problems is the error of Load: every problem. It contains no secret.
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
