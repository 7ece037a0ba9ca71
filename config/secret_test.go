package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// everyWay writes a value in all the ways that could show a secret.
func everyWay(t *testing.T, v any) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%10s"} {
		out[verb] = fmt.Sprintf(verb, v)
	}
	out["error"] = fmt.Errorf("wrapped: %v", v).Error()
	j, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out["json"] = string(j)
	y, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out["yaml"] = string(y)
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("text", "value", v)
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("json", "value", v, slog.Group("group", "value", v))
	out["slog"] = logged.String()
	return out
}

// leaks reports whether hush is in the text, also in hexadecimal.
func leaks(text string) bool {
	return slices.ContainsFunc([]string{"hush", "68757368", "PRIVATE KEY", "YSBwcml2YXRl"}, func(s string) bool {
		return strings.Contains(text, s)
	})
}

func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	c := loadFull(t)
	for name, v := range map[string]any{
		"Config": c, "*Config": &c, "Slack": c.Slack, "[]Secret": []Secret{"hush"},
		"map":    map[string]Secret{"key": "hush"},
		"Secret": Secret("hush"), "RedisURL": c.Redis.URL, "wrong RedisURL": RedisURL("redis://:hush%@h:99999"),
		"query": RedisURL("redis://h?password=hush"), "user": RedisURL("redis://hush@h"), "bare": RedisURL("hush"),
		"socket": RedisURL("unix://u:hush@/run/redis.sock"),
	} {
		for way, text := range everyWay(t, v) {
			if leaks(text) {
				t.Errorf("%s by %s shows a secret: %s", name, way, text)
			}
		}
	}
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil {
		t.Fatal(err)
	}
	if leaks(printed.String()) {
		t.Errorf("Print shows a secret:\n%s", &printed)
	}
	if c.Slack.BotToken.Reveal() != "xoxb-hush" || c.Redis.URL.Reveal() != full()["REDIS_URL"] {
		t.Error("Reveal does not give the value")
	}
}

// Whatever is wrong, neither the error nor what can be printed of the rest shows a value that may be secret.
func TestProblemsNeverShowSecrets(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"REDIS_URL":              "redis://:hush:hush#@h:6379",
		"SLACK_BOT_TOKEN":        "xapp-hush",
		"SLACK_APP_TOKEN":        "xoxb-hush",
		"SLACK_SIGNING_SECRET":   "'hush'",
		"SLACK_API_URL":          "https://u:hush@slack.com",
		"GITHUB_URL":             "https://ghe?token=hush",
		"GITHUB_API_URL":         "hush",
		"ANTHROPIC_BASE_URL":     "http://:hush%@[",
		"GITHUB_APP_PRIVATE_KEY": "hush",
		"ERRAND_SIGNING_KEY":     "hush hush ",
		"GITHUB_WEBHOOK_SECRET":  `"hush"`,
		"ANTHROPIC_API_KEY":      "'hush'\n",
		"ERRAND_CONSOLE_TOKEN":   "[redacted]hush",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := full()
			vars[name] = value
			c, err := load(getenv(vars), machine(t, fullFiles), RoleWorker)
			if err == nil {
				t.Fatalf("%s = %q was accepted", name, value)
			}
			var printed bytes.Buffer
			if perr := c.Print(&printed); perr != nil {
				t.Fatal(perr)
			}
			if text := err.Error() + fmt.Sprintf("%#v", err) + printed.String(); leaks(text) {
				t.Errorf("a secret is shown: %s", text)
			}
		})
	}
}

func TestRedactedForms(t *testing.T) {
	t.Parallel()
	for _, tc := range [][2]string{
		{fmt.Sprint(Secret("x")), "[redacted]"},
		{fmt.Sprint(Secret("")), ""},
		{fmt.Sprintf("%q", Secret("x")), `"[redacted]"`},
		{fmt.Sprintf("%#v", Secret("x")), `config.Secret("[redacted]")`},
		{fmt.Sprint(RedisURL("")), ""},
		{fmt.Sprint(RedisURL("redis://h:1/2")), "redis://h:1/2"},
		{fmt.Sprint(RedisURL("redis://u:p@h:1/2")), "redis://u:[redacted]@h:1/2"},
		{fmt.Sprintf("%#v", RedisURL("redis://:p@h")), `config.RedisURL("redis://:[redacted]@h")`},
		{fmt.Sprint(RedisURL("redis://p@h")), "[redacted]"},
		{
			fmt.Sprint(RedisURL("redis+sentinel://u:p@a:1,b:2/3?master=m")),
			"redis+sentinel://u:[redacted]@a:1,b:2/3?master=m",
		},
		{
			fmt.Sprint(RedisURL("redis+sentinel://a:1,b:2?sentinel_password=p&master=m")),
			"redis+sentinel://a:1,b:2?master=m&sentinel_password=[redacted]",
		},
	} {
		if tc[0] != tc[1] {
			t.Errorf("got %s, want %s", tc[0], tc[1])
		}
	}
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	url := RedisURL("rediss+sentinel://ann:p%21w@one:1,two,[::1]:3/4?master=errand&sentinel_user=s&sentinel_password=q%2Fr" +
		"&db=6&skip_verify=true")
	got, err := Redis{URL: url}.Address()
	if err != nil || got.TLS == nil || got.TLS.ServerName != "" || !got.TLS.InsecureSkipVerify {
		t.Fatalf("%+v, %v", got, err)
	}
	got.TLS = nil
	want := RedisAddress{
		Network: "tcp", Servers: []string{"one:1", "two:26379", "[::1]:3"}, Master: "errand", SentinelUser: "s",
		SentinelPassword: "q/r", User: "ann", Password: "p!w", Database: 6,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("address (-want +got):\n%s", diff)
	}
	c := Config{Redis: Redis{URL: url}, Fleet: Fleet{MetricsToken: "t"}}
	all := []string{c.FleetToken().Reveal(), "p!w", "p%21w", "q%2Fr", "q/r", "t"}
	if diff := cmp.Diff(all, c.Secrets()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}

func TestRedisAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[RedisURL]RedisAddress{
		"redis://h":                          {Network: "tcp", Servers: []string{"h:6379"}},
		"redis://[::1]":                      {Network: "tcp", Servers: []string{"[::1]:6379"}},
		"redis://ann:p%21@h:1/2":             {Network: "tcp", Servers: []string{"h:1"}, User: "ann", Password: "p!", Database: 2},
		"redis://:p@h/2?db=3":                {Network: "tcp", Servers: []string{"h:6379"}, Password: "p", Database: 3},
		"unix://:p@/run/redis.sock?db=4":     {Network: "unix", Servers: []string{"/run/redis.sock"}, Password: "p", Database: 4},
		"redis+sentinel://:p@[::1]?master=m": {Network: "tcp", Servers: []string{"[::1]:26379"}, Password: "p", Master: "m"},
	} {
		got, err := Redis{URL: url}.Address()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", url, err, diff)
		}
	}
	if a, err := (Redis{URL: "rediss://h?skip_verify=false"}).Address(); err != nil || a.TLS == nil || a.TLS.InsecureSkipVerify {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestSecretsListsAll(t *testing.T) {
	t.Parallel()
	c := loadFull(t)
	c.GitHub.Token = "hush-token"
	want := []string{
		"hush-redis!", "hush-redis%21", "xoxb-hush", "hush-signing", "xapp-hush", "hush-webhook", "hush-token",
		"hush-aws", "hush-aws-session", "hush-bedrock", "hush-foundry", "hush-azure", "hush-compose", "sk-hush", "hush-auth",
		"hush-oauth", "hush-console-0123", c.FleetToken().Reveal(), "hush-login", "hush-metrics-0123", "hush-otlp",
		"Basic hush-otlp", "authorization=Basic%20hush-otlp", "hush-team", "X-Virtual-Key: hush-team",
	}
	for _, key := range []string{strings.TrimSpace(testKey), redisKey} {
		want = append(want, key, strings.ReplaceAll(key, "\n", `\n`))
	}
	for line := range strings.Lines(testKey + redisKey) {
		if !strings.HasPrefix(line, "-----") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, c.Secrets()); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if got := (Config{}).Secrets(); len(got) != 0 {
		t.Errorf("Secrets of nothing = %q: an empty string would redact everything", got)
	}
}
