package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minProcesses is what the CLI and one tool of its own need, with their threads.
const minProcesses = 50

// check validates each value on its own, whatever the role.
func (c *Config) check(p *Problems) {
	checkSecrets(p, c.settings())
	c.Redis.URL.check(p)
	checkSwapped(p, "SLACK_BOT_TOKEN", c.Slack.BotToken, "xapp-", "the app-level token", "the bot token, which begins with xoxb-")
	checkSwapped(p, "SLACK_APP_TOKEN", c.Slack.AppToken, "xoxb-", "the bot token", "the app-level token, which begins with xapp-")
	checkURL(p, "SLACK_API_URL", &c.Slack.APIURL, "/")
	checkURL(p, "GITHUB_API_URL", &c.GitHub.APIURL, "/")
	checkURL(p, "GITHUB_URL", &c.GitHub.URL, "")
	checkURL(p, "ANTHROPIC_BASE_URL", &c.Model.BaseURL, "")
	if c.HTTP.PublicURL != "" {
		checkURL(p, "ERRAND_PUBLIC_URL", &c.HTTP.PublicURL, "")
	}
	if c.Worker.URL != "" {
		checkURL(p, "ERRAND_WORKER_URL", &c.Worker.URL, "")
	}
	checkToken(p, "ERRAND_CONSOLE_TOKEN", c.HTTP.ConsoleToken.Reveal())
	checkToken(p, "ERRAND_FLEET_TOKEN", c.Fleet.Token.Reveal())
	checkToken(p, "ERRAND_METRICS_TOKEN", c.Fleet.MetricsToken.Reveal())
	c.HTTP.checkProxy(p)
	c.Keep.check(p)
	checkAddr(p, "ERRAND_HTTP_ADDR", c.HTTP.Addr)
	checkAddr(p, "ERRAND_WORKER_ADDR", c.Worker.Addr)
	if !slices.Contains([]string{GatewayOn, GatewayOff}, c.Model.Gateway) {
		p.add("ERRAND_GATEWAY", fmt.Sprintf("is %q", c.Model.Gateway), "write on or off")
	}
	c.Worker.check(p)
	if slices.Contains(c.Given, "ERRAND_CONCURRENCY") && c.Worker.Concurrency < 2 && !p.has("ERRAND_CONCURRENCY") {
		p.add("ERRAND_CONCURRENCY", fmt.Sprintf("is %d", c.Worker.Concurrency), "write at least 2, so that a person never waits behind automatic work, or unset it to go by the memory of the machine")
	}
	c.Paths.Dirs = checkDirs(p, "ERRAND_DIRS", c.Paths.Dirs)
	c.Paths.Shown = checkDirs(p, "ERRAND_SANDBOX_SHOW", c.Paths.Shown)
	if c.GitHub.AppID < 0 {
		p.add("GITHUB_APP_ID", fmt.Sprintf("is %d", c.GitHub.AppID), "write the number that the settings page of the App shows")
	}
}

var version = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

func (w Worker) check(p *Problems) {
	if !version.MatchString(w.MinClaude) {
		p.add("ERRAND_MIN_CLAUDE", fmt.Sprintf("is %q, which is not a version", w.MinClaude), "write three numbers, like 2.1.329")
	}
	if !slices.Contains([]string{SandboxAuto, SandboxBwrap, SandboxNone}, w.Sandbox) {
		p.add("ERRAND_SANDBOX", fmt.Sprintf("is %q", w.Sandbox), "write auto, bwrap or none")
	}
	if !slices.Contains([]string{"", LogJSON, LogText}, w.LogFormat) {
		p.add("ERRAND_LOG_FORMAT", fmt.Sprintf("is %q", w.LogFormat), "write json or text, or unset it")
	}
	if w.RunLimit < 0 {
		p.add("ERRAND_RUN_LIMIT", fmt.Sprintf("is %v", w.RunLimit), "write a duration above 0, like 2h, or 0s for no limit")
	}
	if w.Processes < 0 || w.Processes > 0 && w.Processes < minProcesses {
		p.add("ERRAND_RUN_PROCESSES", fmt.Sprintf("is %d", w.Processes), fmt.Sprintf("write at least %d, or 0 for no limit", minProcesses))
	}
	if w.IdleLimit < 0 {
		p.add("ERRAND_IDLE_LIMIT", fmt.Sprintf("is %v", w.IdleLimit), "write a duration above 0, like 15m, or 0s for no limit")
	}
	if most := Drain - Pack; w.Grace <= 0 || w.Grace > most {
		p.add("ERRAND_GRACE", fmt.Sprintf("is %v, and a stop would not fit into the %v a worker has to drain, %v of them to pack what is left", w.Grace, Drain, Pack),
			fmt.Sprintf("write a duration above 0 and at most %v, like 15s", most))
	}
}

// checkSecrets refuses what is surely not the secret: white space around it from a copy, or our own stand-in from -print-config.
func checkSecrets(p *Problems, all []setting) {
	for _, s := range all {
		var value string
		switch v := s.value.(type) {
		case Secret:
			value = v.Reveal()
		case RedisURL:
			value = v.Reveal()
		}
		if strings.TrimSpace(value) != value {
			p.add(s.name, "begins or ends with white space", "remove it")
		}
		if strings.Contains(value, redacted) {
			p.add(s.name, "holds "+redacted+", which only stands for the value", "put the value itself there")
		}
	}
}

// checkSwapped catches the two Slack tokens in each other's place. It knows no more of their form, so that fakes may use any.
func checkSwapped(p *Problems, name string, s Secret, prefix, holds, wants string) {
	if strings.HasPrefix(s.Reveal(), prefix) {
		p.add(name, "holds "+holds, "set it to "+wants)
	}
}

// checkURL accepts an absolute http or https URL and gives it the ending its user needs. One that is refused is emptied and not
// quoted: it may hold a password.
func checkURL(p *Problems, name string, raw *string, ending string) {
	u, err := url.Parse(*raw)
	what := ""
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		what = "is not an absolute http or https URL"
	case u.User != nil:
		what = "holds a user or password"
	case u.RawQuery != "" || u.Fragment != "":
		what = "holds a query or fragment"
	default:
		*raw = strings.TrimRight(*raw, "/") + ending
		return
	}
	*raw = ""
	p.add(name, what, "write only scheme, host and path, like https://ghe.example.com/api/v3")
}

// tokenForm is long enough not to be guessed, by a patient program on the same machine either, and fit for a cookie and a header.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{16,}$`)

func checkToken(p *Problems, name, token string) {
	if token != "" && !tokenForm.MatchString(token) && !p.has(name) {
		p.add(name, "is shorter than 16 characters, or has others than letters, digits and ._~+/=-", "set it to the output of `openssl rand -hex 24`")
	}
}

func checkAddr(p *Problems, name, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if n, perr := strconv.Atoi(port); err == nil && perr == nil && n >= 0 && n <= 65535 {
		return
	}
	p.add(name, fmt.Sprintf("is %q, which is not host:port", addr), "write an address to listen on, like 127.0.0.1:8080, or :8080 for all interfaces")
}

// checkDirs returns the paths cleaned; an empty element, as a colon at the end leaves it, means nothing.
func checkDirs(p *Problems, name string, dirs []string) []string {
	var clean []string
	for _, dir := range dirs {
		switch {
		case dir == "":
		case !filepath.IsAbs(dir):
			p.add(name, fmt.Sprintf("holds %q, which is not absolute", dir), "write absolute paths, separated by colons")
		default:
			clean = append(clean, filepath.Clean(dir))
		}
	}
	return clean
}
