package github

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/go-github/v60/github"
)

// Installed lists the repositories on which the App is installed, sorted. Suspended installations are
// left out. It lists at most 1,000 of each of 100 installations.
func (f *Forge) Installed(ctx context.Context) ([]string, error) {
	installations, _, err := f.clients.own.Apps.ListInstallations(ctx, &github.ListOptions{PerPage: 100})
	if err != nil {
		return nil, f.Explain("list the installations of the App", err)
	}
	var names []string
	for _, i := range installations {
		if !i.GetSuspendedAt().IsZero() {
			continue // GitHub gives no token for it
		}
		t, err := f.clients.installed(i.GetID())
		if err != nil {
			return nil, fmt.Errorf("list repositories: %w", err)
		}
		gh, options := f.clients.over(t), &github.ListOptions{PerPage: 100}
		for range 10 {
			some, resp, err := gh.Apps.ListRepos(ctx, options)
			if err != nil {
				return nil, f.Explain("list the repositories of the App", err)
			}
			for _, r := range some.Repositories {
				names = append(names, r.GetFullName())
			}
			if options.Page = resp.NextPage; options.Page == 0 {
				break
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
