package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checks are the checks that the tags of fields name. bound is the text after the name in the tag.
var checks = map[string]func(p *Problems, s setting, bound string){
	"addr": checkAddr, "author": checkAuthor, "dirs": checkDirs, "headers": checkHeaders,
	"limit": checkLimit, "objects": checkObjects, "oneof": checkOneOf, "pool": checkPool, "token": checkToken,
	"url": checkURL,
}

// check validates each value independently of the role.
func (c *Config) check(p *Problems) {
	all := c.settings()
	if !p.Has("REDIS_URL") {
		c.Redis.URL.check(p)
	}
	// Detect swapped Slack tokens. No other form is checked, so that fakes may use any tokens.
	if strings.HasPrefix(c.Slack.BotToken.Reveal(), "xapp-") {
		p.add("SLACK_BOT_TOKEN", "must be the bot token (xoxb-…), not the app-level token", "")
	}
	if strings.HasPrefix(c.Slack.AppToken.Reveal(), "xoxb-") {
		p.add("SLACK_APP_TOKEN", "must be the app-level token (xapp-…), not the bot token", "")
	}
	for _, s := range all {
		name, bound, _ := strings.Cut(s.check, " ")
		if check := checks[name]; check != nil && !s.field.IsZero() && !p.Has(s.name) {
			check(p, s, bound)
		}
	}
	c.HTTP.checkProxy(p)
	if u, err := url.Parse(c.HTTP.PublicURL); err == nil && u.Path != "" {
		p.add("ERRAND_PUBLIC_URL", "has a path",
			"give errand a host of its own, like https://errand.example.com: its pages are at the root")
	}
	if slices.Contains(c.Given, "ERRAND_CONCURRENCY") && c.Worker.Concurrency < 2 && !p.Has("ERRAND_CONCURRENCY") {
		p.add("ERRAND_CONCURRENCY", fmt.Sprintf("must be at least 2, not %d", c.Worker.Concurrency),
			"with 1, people would wait behind automatic work; unset it to choose by the machine's memory")
	}
	if c.GitHub.AppID < 0 {
		p.add("GITHUB_APP_ID", fmt.Sprintf("must be the number on the App's settings page, not %d", c.GitHub.AppID), "")
	}
}

// pool describes the name of a pool.
var pool = regexp.MustCompile(`^[a-z0-9-]{1,30}$`)

const poolForm = "write at most 30 characters of a-z, 0-9 and -"

func checkPool(p *Problems, s setting, _ string) {
	if !pool.MatchString(s.field.String()) {
		p.add(s.name, fmt.Sprintf("is %q, which is not the name of a pool", s.value), poolForm)
	}
}

// checkOneOf accepts the words of the bound.
func checkOneOf(p *Problems, s setting, bound string) {
	words := strings.Fields(bound)
	if last := len(words) - 1; !slices.Contains(words, s.field.String()) {
		others := strings.Join(words[:last], ", ")
		p.add(s.name, fmt.Sprintf("must be %s or %s, not %q", others, words[last], s.value), "")
	}
}

// checkLimit refuses a negative number or duration, and a number below the bound; 0 means no limit.
func checkLimit(p *Problems, s setting, bound string) {
	least, _ := strconv.ParseInt(bound, 10, 64)
	switch n := s.field.Int(); {
	case n > 0 && n < least || n < 0 && least > 0:
		p.add(s.name, fmt.Sprintf("must be at least %d, or 0 for no limit, not %d", least, n), "")
	case n < 0:
		p.add(s.name, fmt.Sprintf("must not be negative (%v)", s.value),
			"use a value like "+s.preset+", or 0 for no limit")
	}
}

// checkURL accepts an absolute http or https URL, and makes it end with the bound. It writes scheme and host in small
// letters, because URLs are compared and may be a part of the fleet's identity. It clears a refused URL and does not
// quote it, because it may contain a password.
func checkURL(p *Problems, s setting, ending string) {
	u, err := url.Parse(bracketed(s.field.String()))
	what := ""
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		what = "must be an absolute http or https URL"
	case u.User != nil:
		what = "must not contain a user or password"
	case u.RawQuery != "" || u.Fragment != "":
		what = "must not contain a query or fragment"
	default:
		u.Host = strings.ToLower(u.Host)
		text := u.Scheme + "://" + u.Host + u.EscapedPath()
		s.field.SetString(strings.TrimRight(text, "/") + ending)
		return
	}
	s.field.SetString("")
	p.add(s.name, what, "use only scheme, host and path, like https://ghe.example.com/api/v3")
}

// bracketed returns a URL with an IPv6 address between brackets, which http://$(POD_IP):8081 lacks in Kubernetes.
func bracketed(text string) string {
	scheme, rest, _ := strings.Cut(text, "://")
	port := max(0, strings.LastIndex(rest, ":"))
	if ip, err := netip.ParseAddr(rest[:port]); err == nil && ip.Is6() {
		return scheme + "://[" + rest[:port] + "]" + rest[port:]
	}
	return text
}

// tokenForm describes a token that cannot be guessed and fits into a cookie and a header.
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/=-]{16,}$`)

func checkToken(p *Problems, s setting, _ string) {
	if !tokenForm.MatchString(s.field.String()) {
		p.add(s.name, "must have at least 16 characters from A-Z, a-z, 0-9 and ._~+/=-",
			"set it to the output of `openssl rand -hex 24`")
	}
}

func checkAddr(p *Problems, s setting, _ string) {
	_, port, err := net.SplitHostPort(s.field.String())
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		p.add(s.name, fmt.Sprintf("must be an address like 127.0.0.1:8080, or :8080 for all interfaces, not %q",
			s.value), "")
	}
}

func checkObjects(p *Problems, s setting, _ string) {
	u, err := url.Parse(s.field.String())
	switch {
	case err != nil || u.User != nil || u.Scheme != "s3" && u.Scheme != "file" ||
		u.Scheme == "file" && (u.Host != "" || !filepath.IsAbs(u.Path)):
		p.add(s.name, "is not the address of an object store",
			"write s3://bucket/prefix or file:///shared/directory, without credentials")
	}
}

// checkDirs accepts absolute paths, and cleans them.
func checkDirs(p *Problems, s setting, _ string) {
	var clean []string
	for _, dir := range s.value.([]string) {
		switch {
		case dir == "":
		case !filepath.IsAbs(dir):
			p.add(s.name, fmt.Sprintf("must be absolute paths separated by colons; %q is not absolute", dir), "")
		default:
			clean = append(clean, filepath.Clean(dir))
		}
	}
	s.field.Set(reflect.ValueOf(clean))
}

// checkRole reports missing settings, for the role and for sources that are partly configured.
func (c *Config) checkRole(p *Problems, role Role) {
	if c.Redis.URL == "" && role != RoleStandalone {
		p.add("REDIS_URL", "is not set",
			"set it to redis://:PASSWORD@HOST:6379/0, or run `worker -standalone`, which starts its own Redis")
	}
	if role == RoleFrontdoor && c.HTTP.ConsoleToken == "" {
		p.add("ERRAND_CONSOLE_TOKEN", "is not set", "set it to the output of `openssl rand -hex 24`")
	}
	c.checkSlack(p, role)
	c.checkGitHub(p, role)
	c.checkResults(p)
	c.checkRights(p)
	c.checkLogin(p, role)
	// A custom gateway may need no credential.
	c.checkModel(p, role)
}

// checkModel refuses a model without a credential, and settings that have no effect.
func (c *Config) checkModel(p *Problems, role Role) {
	if role.runs() && len(c.Routing.Credentials) > 0 {
		c.checkCredentials(p)
		return
	}
	if used := c.Cloud.Used(); role.runs() && used != "" {
		c.checkCloud(p, used)
		return
	}
	if m := c.Model; role.runs() && m.Gateway == GatewayOff && (m.TokenCommand != "" || m.Headers != "") {
		p.add("ERRAND_GATEWAY", "is off, so ERRAND_MODEL_TOKEN_COMMAND and ANTHROPIC_CUSTOM_HEADERS have no effect",
			"set it to on, or unset them")
	}
	if m := c.Model; role.runs() && m.TokenCommand == "" && m.AuthToken+m.APIKey+m.OAuthToken == "" &&
		!slices.Contains(c.Given, "ANTHROPIC_BASE_URL") {
		p.add("ANTHROPIC_API_KEY", "is not set", "set it or another credential (docs/models.md)")
	}
}

// checkCloud refuses a cloud beside another way to the model, and one that is not described.
func (c *Config) checkCloud(p *Problems, used string) {
	m, cl := c.Model, c.Cloud
	if cl.Bedrock && (cl.Vertex || cl.Foundry) || cl.Vertex && cl.Foundry {
		p.add(used, "is not the only cloud",
			"keep one of CLAUDE_CODE_USE_BEDROCK, CLAUDE_CODE_USE_VERTEX and CLAUDE_CODE_USE_FOUNDRY")
	}
	if m.TokenCommand != "" || m.AuthToken+m.APIKey+m.OAuthToken != "" {
		p.add(used, "conflicts with a credential for Anthropic's own API", "unset one of them")
	}
	if m.Gateway == GatewayOff {
		p.add("ERRAND_GATEWAY", "is off, so runs would need the credential of the cloud",
			"set it to on: the worker signs their requests")
	}
	if cl.Vertex && (cl.VertexProject == "" || cl.VertexRegion == "") {
		p.add(used, "is set without a project and a region", "set ANTHROPIC_VERTEX_PROJECT_ID and CLOUD_ML_REGION")
	}
	if cl.Foundry && cl.FoundryResource+cl.FoundryURL == "" {
		p.add(used, "is set without a resource", "set ANTHROPIC_FOUNDRY_RESOURCE or ANTHROPIC_FOUNDRY_BASE_URL")
	}
}

// checkSlack refuses an incomplete Slack configuration. Only a front door receives events.
func (c *Config) checkSlack(p *Problems, role Role) {
	s := c.Slack
	if s.BotToken+s.SigningSecret+s.AppToken == "" {
		return
	}
	if s.BotToken == "" {
		p.add("SLACK_BOT_TOKEN", "is not set although Slack is configured",
			"set it to the bot token (xoxb-…), or unset all SLACK_ variables to disable Slack")
	}
	if s.SigningSecret+s.AppToken == "" && role != RoleWorker {
		p.add("SLACK_SIGNING_SECRET", "is not set although Slack is configured",
			"set it to the signing secret from the app's Basic Information, or set SLACK_APP_TOKEN to an "+
				"app-level token to use Socket Mode")
	}
}

// minPoll is the shortest time between two polls of GitHub.
const minPoll = 10 * time.Second

// checkGitHub refuses a GitHub configuration without identity, with two, or, where events are received, without a
// webhook secret or polling.
func (c *Config) checkGitHub(p *Problems, role Role) {
	g := c.GitHub
	key := slices.Contains(c.Given, "GITHUB_APP_PRIVATE_KEY")
	app := g.AppID != 0 || key
	switch {
	case g.Token == "" && !app && g.WebhookSecret == "":
		return
	case g.Token != "" && app:
		p.add("GITHUB_TOKEN", "and a GitHub App are both set",
			"unset GITHUB_TOKEN, or GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY")
	case g.Token == "" && !app:
		p.add("GITHUB_TOKEN", "is not set although GitHub is configured",
			"set it, or GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY, "+
				"or unset GITHUB_WEBHOOK_SECRET to disable GitHub")
	case app && g.AppID == 0 && !slices.Contains(c.Given, "GITHUB_APP_ID"):
		p.add("GITHUB_APP_ID", "is not set although the App's private key is",
			"set it to the number on the App's settings page")
	case app && !key:
		p.add("GITHUB_APP_PRIVATE_KEY", "is not set although GITHUB_APP_ID is",
			"set it to the App's private key, or to the absolute path of its file")
	}
	if g.WebhookSecret == "" && g.Poll == 0 && role != RoleWorker {
		p.add("GITHUB_WEBHOOK_SECRET", "is not set although GitHub is configured",
			"set it to the webhook's secret, or GITHUB_POLL=20s where GitHub cannot reach errand, or unset the other "+
				"GITHUB_ credentials to disable GitHub")
	}
	if (g.URL == "https://github.com") != (g.APIURL == "https://api.github.com/") && !p.Has("GITHUB_URL") &&
		!p.Has("GITHUB_API_URL") {
		p.add("GITHUB_URL", "and GITHUB_API_URL are of different servers, and both would get the credential",
			"set both, like https://ghe.example.com and https://ghe.example.com/api/v3/, or none")
	}
	if g.Poll > 0 && g.Poll < minPoll {
		p.add("GITHUB_POLL", "is less than 10s",
			"set it to 10s or more: each poll makes some requests for each repository")
	} else if g.Poll > 0 && role != RoleWorker && len(c.Routing.Repositories) == 0 {
		p.add("GITHUB_POLL", "is set, and no repository is listed",
			"list those that are polled under repositories: in errand.yaml")
	}
}

// Networks is a comma-separated list of addresses and networks, like 192.0.2.7,192.0.2.0/24.
type Networks []netip.Prefix

// UnmarshalText parses the form that String returns. A single address is a network of one.
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

// String returns the networks in the form of the setting.
func (n Networks) String() string {
	parts := make([]string, len(n))
	for i, p := range n {
		parts[i] = strings.TrimSuffix(p.String(), fmt.Sprintf("/%d", p.Addr().BitLen()))
	}
	return strings.Join(parts, ",")
}

// loopback are addresses from which agents can connect.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

var headerForm = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// checkProxy refuses an incomplete proxy configuration and addresses that an agent could use.
func (h HTTP) checkProxy(p *Problems) {
	const header, from = "ERRAND_TRUSTED_PROXY_HEADER", "ERRAND_TRUSTED_PROXIES"
	switch {
	case h.ProxyHeader != "" && !headerForm.MatchString(h.ProxyHeader):
		p.add(header, fmt.Sprintf("must be a header name like X-Forwarded-User, not %q", h.ProxyHeader), "")
	case h.ProxyHeader != "" && len(h.Proxies) == 0 && !p.Has(from):
		p.add(from, "is not set although "+header+" is", "set it to the proxy's address, like 192.0.2.7")
	case h.ProxyGroups != "" && (h.ProxyHeader == "" || !headerForm.MatchString(h.ProxyGroups)):
		p.add("ERRAND_TRUSTED_PROXY_GROUPS", "must be a header name like X-Forwarded-Groups, beside "+header, "")
	case h.ProxyHeader == "" && len(h.Proxies) > 0:
		p.add(header, "is not set although "+from+" is",
			"set it to the header with the user's name, like X-Forwarded-User")
	}
	for _, network := range h.Proxies {
		for _, own := range loopback {
			if network.Overlaps(own) {
				p.add(from, fmt.Sprintf("must not include %s (in %s), from which agents can connect", own, network),
					"use the proxy's own address; run a proxy on the same machine in a separate "+
						"network, such as a container's")
			}
		}
	}
}
