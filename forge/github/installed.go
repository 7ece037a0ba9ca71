package github

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-github/v60/github"
)

// Installed lists the repositories on which the App is installed, sorted. Suspended installations are
// left out.
func (f *Forge) Installed(ctx context.Context) ([]string, error) {
	list, err := readAll(ctx, "installations", f.clients.own.Apps.ListInstallations)
	if err != nil {
		return nil, f.Explain("list the installations of the App", err)
	}
	var names []string
	for _, i := range list {
		if !i.GetSuspendedAt().IsZero() {
			continue // GitHub gives no token for it
		}
		t, err := f.clients.installed(i.GetID())
		if err != nil {
			return nil, fmt.Errorf("list repositories: %w", err)
		}
		some, err := f.repositoriesOf(ctx, f.clients.over(t))
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
	slices.Sort(names)
	return names, nil
}

// repositoriesOf lists the repositories of an installation.
func (f *Forge) repositoriesOf(ctx context.Context, gh *github.Client) (names []string, err error) {
	opt := &github.ListOptions{PerPage: 100}
	for name, err := range Pages(opt, (*github.Repository).GetFullName,
		func() ([]*github.Repository, *github.Response, error) {
			page, resp, err := gh.Apps.ListRepos(ctx, opt)
			if err != nil {
				return nil, nil, err
			}
			return page.Repositories, resp, nil
		}) {
		if err != nil {
			return nil, f.Explain("list the repositories of the App", err)
		}
		names = append(names, name)
	}
	return names, nil
}
