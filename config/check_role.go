package config

import "slices"

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
