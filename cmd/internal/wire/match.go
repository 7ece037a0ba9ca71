package wire

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// matcher finds the account on GitHub of a person in Slack: that of the only member of some organisations who has the
// e-mail address of their profile in Slack. Slack has confirmed the address, and GitHub has verified it.
type matcher struct {
	orgs    []string
	email   func(ctx context.Context, user string) (string, error)
	members func(ctx context.Context, org string) (logins map[string]string, err error)
	cache   intake.Cache[map[string]string] // by organisation
}

// How long members, and errors in reading them, count, and how long that may take.
const (
	membersLife  = 15 * time.Minute
	membersError = time.Minute
	membersLimit = time.Minute
)

func newMatcher(orgs []string, email func(context.Context, string) (string, error),
	members func(context.Context, string) (map[string]string, error),
) *matcher {
	return &matcher{
		orgs: orgs, email: email, members: members, cache: intake.Cache[map[string]string]{
			Limit: membersLimit, Life: membersLife, ErrorLife: membersError, Now: time.Now,
		},
	}
}

// login returns the account, or "" if there is none or GitHub refuses to say: diagnose says why. An error means that it
// is not known now.
func (m *matcher) login(ctx context.Context, user string) (login string, err error) {
	email, err := m.email(ctx, user)
	if err != nil || email == "" {
		return "", err
	}
	for _, org := range m.orgs {
		logins, err := m.read(ctx, org)
		if _, refused := errors.AsType[*forge.RefusedError](err); refused {
			return "", nil
		}
		if err != nil {
			return "", tasks.FromForge(err)
		}
		found, known := logins[strings.ToLower(email)]
		if known && (found == "" || login != "" && login != found) {
			return "", nil // of several members
		}
		if known {
			login = found
		}
	}
	return login, nil
}

// read returns the members of an organisation. Reading goes on when ctx ends, for the next caller.
func (m *matcher) read(ctx context.Context, org string) (map[string]string, error) {
	return m.cache.Get(ctx, org, func(ctx context.Context) (map[string]string, error) { return m.members(ctx, org) })
}

// diagnose says for each organisation whether people can be found in it.
func (m *matcher) diagnose(ctx context.Context) (list []doctor.Finding) {
	if m == nil {
		return nil
	}
	for _, org := range m.orgs {
		logins, err := m.read(ctx, org)
		f := doctor.Finding{What: fmt.Sprintf("people in Slack are recognised by %d e-mail "+
			"addresses of members of %s on GitHub", len(logins), org)}
		if err != nil || len(logins) == 0 {
			f = doctor.Finding{
				What: "nobody in Slack is recognised by their e-mail address in " + org,
				Why:  "GitHub gives no address of a member in a verified domain.",
				Remedy: "Verify the domain in the settings of " + org +
					" on GitHub, and give errand the permission Members: read there (docs/slack.md), or " +
					"change slack: match_email:.",
			}
		}
		if err != nil {
			f.Why = err.Error()
		}
		list = append(list, f)
	}
	return list
}
