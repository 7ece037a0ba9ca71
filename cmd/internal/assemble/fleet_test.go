package assemble

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
)

// A process does not start on the Redis of another fleet, and says which fleets these are. A new token and a further
// source leave a fleet what it is.
func TestTwoFleetsOnOneRedis(t *testing.T) {
	t.Parallel()
	url := redistest.Start(t)
	workspace := func(team, token string) *slackfake.Server {
		s := slackfake.New(slackfake.Config{TeamID: team, BotToken: token})
		t.Cleanup(s.Close)
		return s
	}
	one, other := workspace("T0001", "xoxb-1"), workspace("T0002", "xoxb-2")
	in := func(s *slackfake.Server, token string, app int64, name string) *Parts {
		t.Helper()
		c := config.Config{
			Redis: config.Redis{URL: config.RedisURL(url)}, Fleet: config.Fleet{Name: name},
			Paths: config.Paths{State: t.TempDir()},
		}
		if s != nil {
			c.Slack = config.Slack{BotToken: config.Secret(token), SigningSecret: "secret", APIURL: s.APIURL()}
		}
		if app != 0 {
			c.GitHub = config.GitHub{AppID: app, AppKey: config.Secret(appKey(t)), URL: "https://github.example", APIURL: "https://github.example/api/"}
		}
		p, err := New(c, slog.New(slog.NewTextHandler(t.Output(), nil)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		return p
	}
	joins := func(what string, p *Parts) {
		t.Helper()
		if err := p.checkStart(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		} else if err := p.awaitFleet(t.Context()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused := func(what string, p *Parts, says ...string) {
		t.Helper()
		err := p.checkStart(t.Context())
		if !errors.Is(err, store.ErrOtherFleet) {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, word := range says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v does not say %q", what, err, word)
			}
		}
	}
	joins("the first", in(one, "xoxb-1", 0, "errand"))
	joins("another process", in(one, "xoxb-1", 0, "errand"))
	joins("with a new token", in(workspace("T0001", "xoxb-new"), "xoxb-new", 0, "errand"))
	refused("another workspace", in(other, "xoxb-2", 0, "errand"), "T0001", "T0002", "DEL errand:fleet")
	joins("with GitHub in addition", in(one, "xoxb-1", 12, "errand"))
	joins("a process without Slack", in(nil, "", 12, "errand"))
	refused("another App", in(one, "xoxb-1", 13, "errand"), "12 of github.example", "13 of github.example")
	refused("another name", in(nil, "", 0, "staging"), "name errand", "name staging")

	p := in(other, "xoxb-2", 0, "errand")
	if found := p.diagnoseFleet(t.Context()); len(found) != 1 || !found[0].Fatal {
		t.Errorf("doctor of another fleet: %+v", found)
	}
	if err := p.Redis.Del(t.Context(), "errand:fleet").Err(); err != nil { // as the error says
		t.Fatal(err)
	}
	joins("after the move to another workspace", p)
	found := p.diagnoseFleet(t.Context())
	if len(found) != 1 || found[0].Fatal || !strings.Contains(found[0].What, "T0002") {
		t.Errorf("doctor: %+v", found)
	}
}

// While Slack does not answer, a process starts, and it ends when Slack's answer shows that it is of another fleet.
func TestFleetIsComparedLater(t *testing.T) {
	t.Parallel()
	s := slackfake.New(slackfake.Config{TeamID: "T0002", BotToken: "xoxb-1"})
	t.Cleanup(s.Close)
	url := redistest.Start(t)
	p, err := New(config.Config{
		Redis: config.Redis{URL: config.RedisURL(url)}, Fleet: config.Fleet{Name: "errand"},
		Slack: config.Slack{BotToken: "xoxb-1", SigningSecret: "secret", APIURL: s.APIURL()},
		Paths: config.Paths{State: t.TempDir()},
	}, slog.New(slog.NewTextHandler(t.Output(), nil)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if _, err := p.Store.Doctor.Join(t.Context(), map[string]string{fleetSlack: "T0001"}); err != nil {
		t.Fatal(err)
	}
	ask := p.parts[fleetSlack]
	p.parts[fleetSlack] = func(context.Context) (string, error) { return "", errors.New("away") }
	if err := p.checkStart(t.Context()); err != nil || p.joined {
		t.Errorf("without Slack: joined %t, %v", p.joined, err)
	}
	p.parts[fleetSlack] = ask
	if err := p.awaitFleet(t.Context()); !errors.Is(err, store.ErrOtherFleet) {
		t.Errorf("with Slack: %v", err)
	}
}

// appKey returns a private key of a GitHub App.
func appKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{
		Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key),
	}))
}
