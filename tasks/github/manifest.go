package github

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// grant is a permission that the App needs, and for what.
type grant struct {
	name, level string // level is read or write
	use         string // what does not work without it
	must        bool   // nothing works without it
}

// permissions are those of the App. There is none to change workflows or to administer anything: what an agent writes must not be able to.
func permissions() []grant {
	return []grant{
		{"metadata", "read", "no repository is found", true},
		{"contents", "write", "nothing is cloned, and no branch is published", true},
		{"pull_requests", "write", "no pull request is read, reviewed or opened", true},
		{"issues", "write", "comments on pull requests are not heard, nor answered", false},
		{"checks", "write", "commits get no check run, and failed checks are not heard of", false},
		{"statuses", "read", "failed commit statuses are not heard of", false},
		{"actions", "read", "the logs of failed jobs are not read", false},
	}
}

// events are those we act on, and what the App subscribes to.
func events() (names []string) {
	for _, h := range handled {
		names = append(names, h.event)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hookPath is where webhooks arrive.
const hookPath = "/github/webhook"

// maxAppName is the characters of an App's name.
const maxAppName = 34

// App is what GitHub makes an App of that belongs to errand.
type App struct {
	Name string // as it is mentioned
	Base string // where GitHub reaches the front door, like https://errand.example.com; there is no other way in
}

func (a App) check() error {
	if a.Name == "" || len(a.Name) > maxAppName {
		return fmt.Errorf("the name of an App has from 1 to %d characters", maxAppName)
	}
	if u, err := url.Parse(a.Base); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%q is not an address at which GitHub can reach the front door: write it like https://errand.example.com", a.Base)
	}
	return nil
}

func (a App) hook() string { return strings.TrimRight(a.Base, "/") + hookPath }

const appDescription = "Runs errands: reviews pull requests, answers comments, works in repositories"

// manifest is as much of GitHub's App manifest as we set.
type manifest struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	URL         string            `json:"url"`
	Public      bool              `json:"public"`
	Hook        manifestHook      `json:"hook_attributes"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

type manifestHook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// Manifest is the App as JSON, for GitHub's manifest flow.
func (a App) Manifest() ([]byte, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	m := manifest{
		Name: a.Name, Description: appDescription, URL: a.Base,
		Hook: manifestHook{URL: a.hook(), Active: true}, Permissions: map[string]string{}, Events: events(),
	}
	for _, p := range permissions() {
		m.Permissions[p.name] = p.level
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, fmt.Errorf("marshal manifest: %w", err)
	}
	return b.Bytes(), nil
}

// Form is the App as the parameters of GitHub's page that registers one: it comes filled in. Only the webhook's secret is not among them,
// because addresses are kept in many places.
func (a App) Form() (url.Values, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	form := url.Values{
		"name": {a.Name}, "description": {appDescription}, "url": {a.Base}, "public": {"false"},
		"webhook_active": {"true"}, "webhook_url": {a.hook()}, "events[]": events(),
	}
	for _, p := range permissions() {
		form.Set(p.name, p.level)
	}
	return form, nil
}
