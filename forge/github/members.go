package github

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
)

// maxMembers is how many members an organisation may have for VerifiedMembers, which reads memberPage at once.
const (
	maxMembers = 5000
	memberPage = 100
)

const membersQuery = `query($org: String!, $after: String) {
  organization(login: $org) {
    membersWithRole(first: 100, after: $after) {
      nodes { login organizationVerifiedDomainEmails(login: $org) }
      pageInfo { endCursor hasNextPage }
    }
  }
}`

// VerifiedMembers returns the members of an organisation by their e-mail addresses in the domains that the organisation
// has proven to GitHub to be its own, in lower case. An address of several members has an empty login.
func (f *Forge) VerifiedMembers(ctx context.Context, org string) (map[string]string, error) {
	what := "read the members of " + org
	gh, err := f.organisation(ctx, org)
	if err != nil {
		return nil, err
	}
	logins, vars := map[string]string{}, map[string]any{"org": org}
	for range maxMembers / memberPage {
		var answer struct {
			Organization struct {
				Members struct {
					Nodes []struct {
						Login  string   `json:"login"`
						Emails []string `json:"organizationVerifiedDomainEmails"`
					} `json:"nodes"`
					Page struct {
						End  string `json:"endCursor"`
						Next bool   `json:"hasNextPage"`
					} `json:"pageInfo"`
				} `json:"membersWithRole"`
			} `json:"organization"`
		}
		if err := GraphQL(ctx, gh, membersQuery, vars, &answer); err != nil {
			return nil, f.Explain(what, err)
		}
		for _, member := range answer.Organization.Members.Nodes {
			for _, email := range member.Emails {
				login := member.Login
				if other, twice := logins[strings.ToLower(email)]; twice && other != login {
					login = ""
				}
				logins[strings.ToLower(email)] = login
			}
		}
		if !answer.Organization.Members.Page.Next {
			return logins, nil
		}
		vars["after"] = answer.Organization.Members.Page.End
	}
	return nil, &forge.RefusedError{Sentence: fmt.Sprintf("%s has more than %d members on GitHub.", org, maxMembers)}
}

// organisation returns a client that may read what the App or token may read of an organisation.
func (f *Forge) organisation(ctx context.Context, org string) (*github.Client, error) {
	if !f.IsApp() {
		return f.clients.own, nil
	}
	for page := 1; page != 0; {
		some, resp, err := f.clients.own.Apps.ListInstallations(ctx, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, f.Explain("list the installations of the App", err)
		}
		for _, i := range some {
			if strings.EqualFold(i.GetAccount().GetLogin(), org) {
				return f.clients.of(ctx, "", i.GetID())
			}
		}
		page = resp.NextPage
	}
	return nil, &forge.RefusedError{Sentence: "errand's GitHub App is not installed in " + org + "."}
}
