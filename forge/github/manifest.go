package github

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/go-github/v60/github"
)

// grant is a permission that the App needs.
type grant struct {
	name, level string // level is read or write
	use         string // what fails without it
	must        bool   // nothing works without it
}

// permissions returns those of the App. It may change no workflows and administer nothing, because an agent could make
// use of that.
func permissions() []grant {
	return []grant{
		{"metadata", "read", "repositories cannot be found", true},
		{"contents", "write", "repositories cannot be cloned, and branches cannot be pushed", true},
		{"pull_requests", "write", "pull requests cannot be read, reviewed or opened", true},
		{"issues", "write", "issues and comments on pull requests are neither received nor answered", false},
		{"checks", "write", "commits get no check run, and failed checks are not noticed", false},
		{"statuses", "read", "failed commit statuses are not noticed", false},
		{"actions", "read", "the logs of failed jobs cannot be read", false},
	}
}

// Permissions returns the names and levels of the permissions that the App needs.
func Permissions() map[string]string {
	all := map[string]string{}
	for _, p := range permissions() {
		all[p.name] = p.level
	}
	return all
}

// Events returns the webhook events that errand handles and the App subscribes to, sorted.
func Events() []string {
	return []string{
		"check_run", "check_suite", "issue_comment", "issues", "pull_request", "pull_request_review",
		"pull_request_review_comment", "status", "workflow_run",
	}
}

// HookPath is the path that receives webhooks.
const HookPath = "/github/webhook"

// maxAppName is GitHub's limit for the name of an App.
const maxAppName = 34

// App describes a GitHub App for errand.
type App struct {
	Name string // also its login
	Base string // URL at which GitHub reaches errand, like https://errand.example.com; empty: errand polls

	Redirect string // where GitHub sends the browser of who has created the App; empty: nowhere
}

func (a App) validate() error {
	if a.Name == "" || len(a.Name) > maxAppName {
		return fmt.Errorf("the name of an App has from 1 to %d characters", maxAppName)
	}
	if u, err := url.Parse(a.Base); a.Base == "" {
		return nil
	} else if err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not a URL at which GitHub can reach errand: write it like https://errand.example.com",
			a.Base)
	}
	return nil
}

func (a App) hook() string { return strings.TrimRight(a.Base, "/") + HookPath }

// homepage is the URL of an App that GitHub cannot reach; it wants one.
const homepage = "https://github.com/errand-fleet/errand"

const appDescription = "Runs errands: reviews pull requests, answers comments, works in repositories"

// manifest holds the fields of GitHub's App manifest that errand sets.
type manifest struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	URL         string            `json:"url"`
	Public      bool              `json:"public"`
	Redirect    string            `json:"redirect_url,omitempty"`
	Hook        *manifestHook     `json:"hook_attributes,omitempty"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events,omitempty"`
}

type manifestHook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// Manifest returns the App as JSON, for GitHub's manifest flow.
func (a App) Manifest() ([]byte, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	m := manifest{
		Name: a.Name, Description: appDescription, URL: cmp.Or(a.Base, homepage), Permissions: Permissions(),
		Redirect: a.Redirect,
	}
	if a.Base != "" {
		m.Hook, m.Events = &manifestHook{URL: a.hook(), Active: true}, Events()
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("marshal manifest: %w", err)
	}
	return append(b, '\n'), nil
}

// Form returns the App as query parameters for GitHub's page that registers one. The webhook's secret is left out,
// because browsers and servers record URLs.
func (a App) Form() (url.Values, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	form := url.Values{
		"name": {a.Name}, "description": {appDescription}, "url": {cmp.Or(a.Base, homepage)}, "public": {"false"},
		"webhook_active": {strconv.FormatBool(a.Base != "")},
	}
	if a.Base != "" {
		form["webhook_url"], form["events[]"] = []string{a.hook()}, Events()
	}
	for _, p := range permissions() {
		form.Set(p.name, p.level)
	}
	return form, nil
}

// CreatedApp is an App that GitHub has made of a manifest.
type CreatedApp struct {
	ID                 int64
	Name, URL          string // URL of its page
	Key, WebhookSecret string // the secret is empty without a webhook
}

// CreateApp exchanges the code with which GitHub has sent a browser back. A code is valid once, for an hour. api is the
// base URL of the REST API.
func CreateApp(ctx context.Context, api, code string) (CreatedApp, error) {
	base, err := url.Parse(strings.TrimRight(api, "/") + "/")
	if err != nil {
		return CreatedApp{}, fmt.Errorf("create App: %w", err)
	}
	gh := github.NewClient(&http.Client{Timeout: attempt, CheckRedirect: sameHost})
	gh.BaseURL, gh.UserAgent = base, "errand"
	app, _, err := gh.Apps.CompleteAppManifest(ctx, url.PathEscape(code))
	if err != nil {
		return CreatedApp{}, fmt.Errorf("create App: %w", err)
	}
	return CreatedApp{
		ID: app.GetID(), Name: app.GetSlug(), URL: app.GetHTMLURL(), Key: app.GetPEM(),
		WebhookSecret: app.GetWebhookSecret(),
	}, nil
}
