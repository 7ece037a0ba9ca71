package githubfake_test

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	return must(rsa.GenerateKey(rand.Reader, 2048))(t)
}

// startApp runs a fake with an App and returns the App's transport.
func startApp(t *testing.T, cfg githubfake.Config) (*githubfake.Server, *ghinstallation.AppsTransport) {
	t.Helper()
	key := newKey(t)
	cfg.AppID, cfg.AppKey, cfg.InstallationID = 77, &key.PublicKey, 5
	s, _ := start(t, cfg)
	return s, appTransport(t, s, 77, key)
}

func appTransport(t *testing.T, s *githubfake.Server, id int64, key *rsa.PrivateKey) *ghinstallation.AppsTransport {
	t.Helper()
	conns := &http.Transport{}
	t.Cleanup(conns.CloseIdleConnections)
	tr := ghinstallation.NewAppsTransportFromPrivateKey(conns, id, key)
	tr.BaseURL = s.APIURL()
	return tr
}

// installed is a client of the installation.
func installed(t *testing.T, s *githubfake.Server, tr *ghinstallation.AppsTransport) *github.Client {
	t.Helper()
	return aim(t, s, github.NewClient(&http.Client{Transport: ghinstallation.NewFromAppsTransport(tr, 5)}))
}

func TestAppJWTRefused(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	s, _ := start(t, githubfake.Config{AppID: 77, AppKey: &key.PublicKey})
	now := time.Now()
	good := jwt.RegisteredClaims{
		Issuer: "77", IssuedAt: jwt.NewNumericDate(now.Add(-time.Minute)),
		ExpiresAt: jwt.NewNumericDate(now.Add(5 * time.Minute)),
	}
	for _, c := range []struct {
		name, want string
		sign       func(jwt.RegisteredClaims) (string, error)
	}{
		{"good", "", func(c jwt.RegisteredClaims) (string, error) {
			return jwt.NewWithClaims(jwt.SigningMethodRS256, c).SignedString(key)
		}},
		{"other key", "could not be decoded", func(c jwt.RegisteredClaims) (string, error) {
			return jwt.NewWithClaims(jwt.SigningMethodRS256, c).SignedString(newKey(t))
		}},
		{"other method", "could not be decoded", func(c jwt.RegisteredClaims) (string, error) {
			return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString([]byte("x"))
		}},
		{"other app", "Integration not found", func(c jwt.RegisteredClaims) (string, error) {
			c.Issuer = "78"
			return jwt.NewWithClaims(jwt.SigningMethodRS256, c).SignedString(key)
		}},
		{"expired", "('exp') must be", func(c jwt.RegisteredClaims) (string, error) {
			c.ExpiresAt = jwt.NewNumericDate(now.Add(-time.Second))
			return jwt.NewWithClaims(jwt.SigningMethodRS256, c).SignedString(key)
		}},
		{"too long", "('exp') is too far", func(c jwt.RegisteredClaims) (string, error) {
			c.ExpiresAt = jwt.NewNumericDate(now.Add(11 * time.Minute))
			return jwt.NewWithClaims(jwt.SigningMethodRS256, c).SignedString(key)
		}},
		{"from the future", "('iat')", func(c jwt.RegisteredClaims) (string, error) {
			c.IssuedAt = jwt.NewNumericDate(now.Add(time.Minute))
			return jwt.NewWithClaims(jwt.SigningMethodRS256, c).SignedString(key)
		}},
	} {
		_, _, err := newClient(t, s, must(c.sign(good))(t)).Apps.Get(t.Context(), "")
		switch {
		case c.want != "":
			wantError(t, err, 401, c.want)
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// An installation token ends by the clock of the fake.
func TestTokenEnds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s, tr := startApp(t, githubfake.Config{Now: func() time.Time { return now }, TokenLife: time.Minute})
	app := aim(t, s, github.NewClient(&http.Client{Transport: tr}))
	tok, _, err := app.Apps.CreateInstallationToken(t.Context(), 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, s, tok.GetToken())
	if _, _, err := c.Repositories.Get(t.Context(), "acme", "api"); err != nil {
		t.Error(err)
	}
	now = now.Add(time.Minute)
	_, _, err = c.Repositories.Get(t.Context(), "acme", "api")
	wantError(t, err, 401, "Bad credentials")
}

func TestNarrowedToken(t *testing.T) {
	t.Parallel()
	s, tr := startApp(t, githubfake.Config{})
	must(s.CreateRepo("acme", "web", nil))(t)
	open(t, s)
	app := aim(t, s, github.NewClient(&http.Client{Transport: tr}))
	ask := func(o *github.InstallationTokenOptions) (*github.InstallationToken, error) {
		tok, _, err := app.Apps.CreateInstallationToken(t.Context(), 5, o)
		return tok, err
	}
	tok := must(ask(&github.InstallationTokenOptions{
		Repositories: []string{"api"}, Permissions: &github.InstallationPermissions{
			Contents: new("read"), PullRequests: new("read"),
		},
	}))(t)
	c := newClient(t, s, tok.GetToken())
	if _, _, err := c.PullRequests.Get(t.Context(), "acme", "api", 1); err != nil {
		t.Error(err)
	}
	_, _, err := c.Repositories.Get(t.Context(), "acme", "web")
	wantError(t, err, 404, "Not Found")
	_, _, err = c.Issues.CreateComment(t.Context(), "acme", "api", 1, &github.IssueComment{Body: new("x")})
	wantError(t, err, 403, "Resource not accessible by integration")
	g := newGit(t, tok.GetToken())
	g.run(t, "clone", s.Repo(repo).CloneURL(), "work")
	g.dir += "/work"
	if _, err := g.try(t, "push", "origin", "HEAD:refs/heads/x"); err == nil {
		t.Error("pushed with contents: read")
	}

	_, err = ask(&github.InstallationTokenOptions{Repositories: []string{"none"}})
	wantError(t, err, 422, "does not exist or is not accessible")
	_, err = ask(&github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{Secrets: new("write")}})
	wantError(t, err, 422, "permissions requested are not granted")
}
