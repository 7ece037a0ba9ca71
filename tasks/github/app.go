package github

import (
	"context"
	"fmt"
	"strings"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v60/github"
)

// app signs as the App. Each installation needs one of its own: ghinstallation writes to it when it refreshes a token.
func (c *clients) app() (*ghinstallation.AppsTransport, error) {
	t, err := ghinstallation.NewAppsTransport(tokenRefusals{c.transport}, c.cfg.AppID, c.cfg.AppKey)
	if err != nil {
		return nil, fmt.Errorf("read the App's key: %w", err)
	}
	t.BaseURL = strings.TrimRight(c.base.String(), "/")
	return t, nil
}

func (c *clients) installed(id int64) (*ghinstallation.Transport, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return ghinstallation.NewFromAppsTransport(app, id), nil
}

// repository finds the installation of a repository, and keeps what was found.
func (c *clients) repository(ctx context.Context, repo string) (*ghinstallation.Transport, error) {
	c.mu.Lock()
	t := c.git[repo]
	c.mu.Unlock()
	if t != nil {
		return t, nil
	}
	owner, name, _ := strings.Cut(repo, "/")
	found, _, err := c.own.Apps.FindRepositoryInstallation(ctx, owner, name)
	if err != nil {
		return nil, fmt.Errorf("find installation for %s: %w", repo, err)
	}
	if t, err = c.installed(found.GetID()); err != nil {
		return nil, err
	}
	t.InstallationTokenOptions = &github.InstallationTokenOptions{Repositories: []string{name}}
	if c.cfg.watched(repo) {
		t.InstallationTokenOptions.Permissions = &github.InstallationPermissions{Contents: new("read")}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.git[repo] = t
	return t, nil
}

// password is what opens the git remote of a repository.
func (c *clients) password(ctx context.Context, repo string) (string, error) {
	if c.cfg.Token != "" {
		return c.cfg.Token, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	t, err := c.repository(ctx, repo)
	if err != nil {
		return "", err
	}
	token, err := t.Token(ctx)
	if err != nil {
		// The App may have been removed and installed anew: the next attempt looks again.
		c.mu.Lock()
		delete(c.git, repo)
		c.mu.Unlock()
	}
	return token, err
}
