package config

import (
	"fmt"
	"net"
	"net/netip"
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

// checkRole finds what is missing, for the role and for the sources that are begun.
func (c *Config) checkRole(p *Problems, role Role) {
	switch {
	case c.Redis.URL != "":
	case role == RoleClient:
		if c.HTTP.ConsoleToken == "" {
			p.add("REDIS_URL", "and ERRAND_CONSOLE_TOKEN are not set", "set one of them to the value the server has, REDIS_URL to go to its Redis or ERRAND_CONSOLE_TOKEN to go by HTTP")
		}
	case role != RoleStandalone:
		p.add("REDIS_URL", "is not set", "set it to redis://:PASSWORD@HOST:6379/0, or run `worker -standalone`, which brings its own")
	}
	if role == RoleFrontdoor && c.HTTP.ConsoleToken == "" {
		p.add("ERRAND_CONSOLE_TOKEN", "is not set", "set it to a long random string, for example from `openssl rand -hex 24`")
	}
	if role == RoleClient {
		return // a laptop may well have some GITHUB_TOKEN in its environment; that says nothing about the server
	}
	c.checkSlack(p)
	c.checkGitHub(p)
	c.checkResults(p)
	// A gateway of one's own may ask for no credential.
	if m := c.Model; role.runs() && m.AuthToken+m.APIKey+m.OAuthToken == "" && !slices.Contains(c.Given, "ANTHROPIC_BASE_URL") {
		p.add("ANTHROPIC_API_KEY", "is not set", "set it, or ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN; without one no run can reach the model")
	}
}

// checkSlack refuses a Slack that is begun but could not speak or hear.
func (c *Config) checkSlack(p *Problems) {
	s := c.Slack
	if s.BotToken+s.SigningSecret+s.AppToken == "" {
		return
	}
	if s.BotToken == "" {
		p.add("SLACK_BOT_TOKEN", "is not set although Slack is configured", "set it to the bot token (xoxb-…), or unset all other SLACK_ variables to do without Slack")
	}
	if s.SigningSecret+s.AppToken == "" {
		p.add("SLACK_SIGNING_SECRET", "is not set although Slack is configured", "set it to the signing secret that the app's Basic Information shows, or SLACK_APP_TOKEN to an app-level token to do without an address that Slack can reach")
	}
}

// checkGitHub refuses a GitHub that is begun but has no identity, or two, or cannot verify events.
func (c *Config) checkGitHub(p *Problems) {
	g := c.GitHub
	key := slices.Contains(c.Given, "GITHUB_APP_PRIVATE_KEY_FILE") || g.AppKeyText != ""
	app := g.AppID != 0 || key
	switch {
	case g.Token == "" && !app && g.WebhookSecret == "":
		return
	case g.Token != "" && app:
		p.add("GITHUB_TOKEN", "and a GitHub App are both set", "unset GITHUB_TOKEN, or GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY_FILE, so that it is clear who speaks")
	case g.Token == "" && !app:
		p.add("GITHUB_TOKEN", "is not set although GitHub is configured", "set it, or GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY_FILE, or unset GITHUB_WEBHOOK_SECRET to do without GitHub")
	case app && g.AppID == 0 && !slices.Contains(c.Given, "GITHUB_APP_ID"):
		p.add("GITHUB_APP_ID", "is not set although the App's private key is", "set it to the number that the settings page of the App shows")
	case app && !key:
		p.add("GITHUB_APP_PRIVATE_KEY_FILE", "is not set although GITHUB_APP_ID is", "set it to the path of the App's private key, or GITHUB_APP_PRIVATE_KEY to the key itself")
	}
	if g.WebhookSecret == "" {
		p.add("GITHUB_WEBHOOK_SECRET", "is not set although GitHub is configured", "set it to the secret of the webhook (any long random string, the same on both sides), or unset the other GITHUB_ credentials to do without GitHub")
	}
}

// Networks are addresses and networks, written 192.0.2.7 and 192.0.2.0/24, with commas between them.
type Networks []netip.Prefix

// UnmarshalText reads what String writes. A single address is the network of it alone.
func (n *Networks) UnmarshalText(text []byte) error {
	*n = nil
	for part := range strings.SplitSeq(string(text), ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		prefix, err := netip.ParsePrefix(part)
		if err != nil {
			addr, err := netip.ParseAddr(part)
			if err != nil {
				return fmt.Errorf("read network: %w", err)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		*n = append(*n, prefix.Masked())
	}
	return nil
}

func (n Networks) String() string {
	parts := make([]string, len(n))
	for i, p := range n {
		parts[i] = strings.TrimSuffix(p.String(), fmt.Sprintf("/%d", p.Addr().BitLen()))
	}
	return strings.Join(parts, ",")
}

// loopback are the addresses that an agent has as well as we.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

var headerForm = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// checkProxy refuses a proxy that is named by half, and one that an agent could pass for.
func (h HTTP) checkProxy(p *Problems) {
	const header, from = "ERRAND_TRUSTED_PROXY_HEADER", "ERRAND_TRUSTED_PROXIES"
	switch {
	case h.ProxyHeader != "" && !headerForm.MatchString(h.ProxyHeader):
		p.add(header, fmt.Sprintf("is %q, which is no name of a header", h.ProxyHeader), "write one like X-Forwarded-User")
	case h.ProxyHeader != "" && len(h.Proxies) == 0 && !p.has(from):
		p.add(from, "is not set although "+header+" is", "set it to the address from which the proxy connects, like 192.0.2.7")
	case h.ProxyHeader == "" && len(h.Proxies) > 0:
		p.add(header, "is not set although "+from+" is", "set it to the header in which the proxy says who has logged in, like X-Forwarded-User")
	}
	for _, network := range h.Proxies {
		for _, own := range loopback {
			if network.Overlaps(own) {
				p.add(from, fmt.Sprintf("holds %s, and with it %s, from which agents can connect as well", network, own),
					"write the proxy's own address; a proxy on the same machine can only be trusted in a network of its own, such as a container's")
			}
		}
	}
}
