package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/forge/github"
)

// appCreation creates a GitHub App by GitHub's manifest flow: a page on this machine sends the manifest to GitHub,
// where a person confirms it, and GitHub sends their browser back with a code for the App's ID, key and webhook secret.
type appCreation struct {
	*terminal

	app     github.App
	action  string // URL of GitHub's page
	api     string // base URL of the REST API
	start   string // path of the page that sends the manifest; secret, because the page has the state
	state   string // a secret that GitHub passes back
	env     string // path of .env
	created chan github.CreatedApp
}

// newAppCreation checks that what GitHub is going to return can be kept, because it can be had only once.
func (t *terminal) newAppCreation(app github.App, page, dir string) (*appCreation, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &appCreation{
		terminal: t, app: app, action: page + "/settings/apps/new", api: t.githubAPI(),
		start: "/" + rand.Text() + "/", state: rand.Text(), env: filepath.Join(dir, ".env"),
		created: make(chan github.CreatedApp, 1),
	}
	if err := create(c.env, dotEnv(), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	text, err := os.ReadFile(c.env)
	if err != nil {
		return nil, err
	}
	if regexp.MustCompile(`(?m)^GITHUB_APP_ID=.`).Match(text) {
		err := fmt.Errorf("%s has a GitHub App already: remove GITHUB_APP_ID there to create another one", c.env)
		return nil, usageError{err}
	}
	return c, nil
}

// run serves the page until the App exists, and writes .env. It shows the address in one of the texts of help.txt.
func (c *appCreation) run(ctx context.Context, address, text string) (github.CreatedApp, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return github.CreatedApp{}, fmt.Errorf("listen for the browser: %w", err)
	}
	base := "http://" + listener.Addr().String()
	c.app.Redirect = base + "/created"
	pages := http.NewServeMux()
	pages.HandleFunc("GET "+c.start+"{$}", c.sendManifest)
	pages.HandleFunc("GET /created", c.receiveCode)
	server := &http.Server{Handler: refuseNames(pages), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // the error is that of Shutdown
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), guidePause)
		defer cancel()
		_ = server.Shutdown(ctx)
	}()
	printText(c.stderr, text, map[string]string{"URL": base + c.start})
	return c.wait(ctx)
}

// installPage is where the App is installed on repositories.
func installPage(app github.CreatedApp) string { return app.URL + "/installations/new" }

// refuseNames refuses requests whose Host is a name other than localhost: a page elsewhere whose name was rebound to
// this machine would read what only the person may see. An address cannot be rebound.
func refuseNames(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		if _, err := netip.ParseAddr(host); err != nil && host != "localhost" {
			http.Error(w, "Open the address that errand has shown.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// wait writes .env when the App exists, also if it exists just when ctx ends, and returns the App.
func (c *appCreation) wait(ctx context.Context) (github.CreatedApp, error) {
	select {
	case app := <-c.created:
		return app, c.keep(app)
	case <-ctx.Done():
	}
	select {
	case app := <-c.created:
		return app, c.keep(app)
	default:
		return github.CreatedApp{}, context.Cause(ctx)
	}
}

var manifestPage = template.Must(template.New("").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>errand: create a GitHub App</title>
<form method="post" action="{{.Action}}"><input type="hidden" name="manifest" value="{{.Manifest}}">
<p>Next, GitHub shows the App {{.Name}} with its permissions. Nothing is created until you confirm it there.</p>
<button>Continue to GitHub</button></form>
<script>document.forms[0].submit()</script></html>
`))

// sendManifest serves the page that sends the manifest to GitHub.
func (c *appCreation) sendManifest(w http.ResponseWriter, _ *http.Request) {
	manifest, err := c.app.Manifest()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	action := c.action + "?state=" + c.state
	_ = manifestPage.Execute(w, map[string]string{"Action": action, "Manifest": string(manifest), "Name": c.app.Name})
}

// receiveCode exchanges the code for the App, and sends the browser on to where it is installed.
func (c *appCreation) receiveCode(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	if query.Get("state") != c.state || query.Get("code") == "" {
		http.Error(w, "This is not the answer to the page that errand has shown. Begin again there.",
			http.StatusBadRequest)
		return
	}
	// The code is good for one exchange, which goes on if the person closes the page. It has its own time limit.
	app, err := github.CreateApp(context.WithoutCancel(req.Context()), c.api, query.Get("code"))
	if err != nil {
		http.Error(w,
			"GitHub did not return the App: "+err.Error()+". Delete it in GitHub's settings, and begin again.",
			http.StatusBadGateway)
		return
	}
	select {
	case c.created <- app:
		http.Redirect(w, req, installPage(app), http.StatusSeeOther) //nolint:gosec // GitHub gave the address
	default:
		http.Error(w, "The App was created before.", http.StatusConflict)
	}
}

// keep writes the App's settings.
func (c *appCreation) keep(app github.CreatedApp) error {
	values := [][2]string{
		{"GITHUB_APP_ID", strconv.FormatInt(app.ID, 10)},
		{"GITHUB_APP_PRIVATE_KEY", strings.ReplaceAll(strings.TrimSpace(app.Key), "\n", `\n`)},
	}
	if c.app.Base == "" {
		values = append(values, [2]string{"GITHUB_POLL", "20s"})
	} else {
		values = append(values, [2]string{"GITHUB_WEBHOOK_SECRET", app.WebhookSecret})
	}
	if err := setVariables(c.env, values); err != nil {
		return fmt.Errorf("%w; GitHub makes another private key of the App at %s", err, app.URL)
	}
	return nil
}

// setVariables sets variables in an .env file, in the places where it explains them.
func setVariables(path string, values [][2]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("set variables: %w", err)
	}
	for _, v := range values {
		line := v[0] + "=" + config.Quote(v[1])
		if place := regexp.MustCompile(`(?m)^(# )?` + v[0] + `=.*$`).FindIndex(text); place != nil {
			text = []byte(string(text[:place[0]]) + line + string(text[place[1]:]))
		} else {
			text = append(text, "\n"+line+"\n"...)
		}
	}
	if err := replaceFile(path, text); err != nil {
		return fmt.Errorf("set variables: %w", err)
	}
	return nil
}

// githubURL and githubAPI return the addresses of the site and of its API.
func (t *terminal) githubURL() string {
	return strings.TrimRight(cmp.Or(t.getenv("GITHUB_URL"), "https://github.com"), "/")
}

func (t *terminal) githubAPI() string {
	return strings.TrimRight(cmp.Or(t.getenv("GITHUB_API_URL"), "https://api.github.com"), "/") + "/"
}

// appPage returns the base of GitHub's pages about the Apps of an account.
func (t *terminal) appPage(org string) string {
	page := t.githubURL()
	if org != "" {
		page += "/organizations/" + url.PathEscape(org)
	}
	return page
}
