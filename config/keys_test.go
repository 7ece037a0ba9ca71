package config

import (
	"strings"
	"testing"
)

// A key or a secret may have the line ends of its file, or be written in one line.
func TestSecretsFromFiles(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(testKey)
	for name, written := range map[string]string{
		"with a final line end": key + "\n", "without": key, "of Windows": strings.ReplaceAll(key, "\n", "\r\n"),
		"in one line":             strings.ReplaceAll(key, "\n", `\n`),
		"in one line, of Windows": strings.ReplaceAll(key, "\n", `\r\n`),
		"in one line that ends":   strings.ReplaceAll(key, "\n", `\n`) + "\n",
		"with blanks around it":   "\n  " + key + "  \n",
		"in quotation marks":      "'" + strings.ReplaceAll(key, "\n", `\n`) + "'",
	} {
		vars := map[string]string{
			"REDIS_URL": "redis://:hush@h:6379/0\n", "SLACK_BOT_TOKEN": "xoxb-1\r\n", "ANTHROPIC_API_KEY": "k\n",
			"GITHUB_APP_ID": "1\r\n", "ERRAND_SANDBOX": "bwrap\r", "ERRAND_WORKER_URL": "http://h:1\n",
			"GITHUB_APP_PRIVATE_KEY": written, "GITHUB_WEBHOOK_SECRET": "w\n",
			"ERRAND_SIGNING_KEY": written,
		}
		c, err := load(getenv(vars), machine(t, nil), RoleWorker)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.GitHub.AppKey.Reveal() != key || c.Commits.Key.Reveal() != key {
			t.Errorf("%s: keys %q and %q", name, c.GitHub.AppKey.Reveal(), c.Commits.Key.Reveal())
		}
		got := []string{c.Redis.URL.Reveal(), c.Slack.BotToken.Reveal(), c.GitHub.WebhookSecret.Reveal()}
		if want := []string{"redis://:hush@h:6379/0", "xoxb-1", "w"}; strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestSecretsOfErrandYAMLFromFiles(t *testing.T) {
	t.Parallel()
	written := func(string) string { return "a long signing secret\n" }
	secret, err := EnvReference(`{{ env "HOOK" }}`).Read(written)
	if err != nil || secret.Reveal() != "a long signing secret" {
		t.Errorf("%q, %v", secret.Reveal(), err)
	}
	r := Repository{Secrets: map[string]RepositorySecret{"TOKEN": {From: "env:TOKEN"}}}
	if err := r.ReadSecrets(written, nil, nil); err != nil || r.Secrets["TOKEN"].Value.Reveal() != "a long signing secret" {
		t.Errorf("%+v, %v", r.Secrets["TOKEN"].Value.Reveal(), err)
	}
}
