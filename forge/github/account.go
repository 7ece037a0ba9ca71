package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-github/v60/github"
)

// Account is what GitHub says about a person who has logged in there.
type Account struct {
	Login  string
	ID     int64
	Email  string   // the primary one, if it is verified
	Groups []string // organisations, and teams as "organisation/team"
}

// ReadAccount reads the account of the person whose token a client has. api is the base URL of the REST API, ending in
// a slash.
func ReadAccount(ctx context.Context, api string, client *http.Client) (a Account, err error) {
	gh := github.NewClient(client)
	if gh.BaseURL, err = url.Parse(api); err != nil {
		return a, err
	}
	user, _, err := gh.Users.Get(ctx, "")
	if err != nil {
		return a, fmt.Errorf("read account: %w", err)
	}
	if user.GetLogin() == "" {
		return a, errors.New("GitHub names no account")
	}
	a.Login, a.ID = user.GetLogin(), user.GetID()
	emails, err := readAll(ctx, "e-mail addresses", gh.Users.ListEmails)
	if err != nil {
		return a, err
	}
	for _, e := range emails {
		if e.GetPrimary() && e.GetVerified() {
			a.Email = e.GetEmail()
		}
	}
	orgs, err := readAll(ctx, "organisations",
		func(ctx context.Context, o *github.ListOptions) ([]*github.Organization, *github.Response, error) {
			return gh.Organizations.List(ctx, "", o)
		})
	if err != nil {
		return a, err
	}
	for _, org := range orgs {
		a.Groups = append(a.Groups, org.GetLogin())
	}
	teams, err := readAll(ctx, "teams", gh.Teams.ListUserTeams)
	for _, team := range teams {
		a.Groups = append(a.Groups, team.GetOrganization().GetLogin()+"/"+team.GetSlug())
	}
	return a, err
}

// readAll reads the pages of a list.
func readAll[T any](
	ctx context.Context, what string, list func(context.Context, *github.ListOptions) ([]T, *github.Response, error),
) (all []T, err error) {
	o := &github.ListOptions{PerPage: 100}
	for one, err := range Pages(o, Same[T], func() ([]T, *github.Response, error) { return list(ctx, o) }) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", what, err)
		}
		all = append(all, one)
	}
	return all, nil
}
