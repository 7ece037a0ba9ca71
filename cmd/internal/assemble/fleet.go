package assemble

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	githubforge "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/slack"
)

// The parts of a fleet's identity. They stay the same when a token is replaced.
const (
	fleetName    = "name"
	fleetSlack   = "Slack team"
	fleetApp     = "GitHub App"
	fleetAccount = "GitHub account"
)

// askPart asks a service for its part of the identity.
type askPart func(ctx context.Context) (string, error)

// identityAgain is the pause before the next request to a service for its part of the identity.
const identityAgain = 10 * time.Second

// identity returns the parts of this process's identity. The error says which services did not tell theirs.
func (p *Parts) identity(ctx context.Context) (parts map[string]string, err error) {
	parts = map[string]string{fleetName: p.Config.Fleet.Name}
	var errs []error
	for part, ask := range p.parts {
		value, err := ask(ctx)
		if err == nil {
			parts[part] = value
		}
		errs = append(errs, err)
	}
	return parts, errors.Join(errs...)
}

// identityParts returns how to get the parts of the identity that services know.
func (p *Parts) identityParts() map[string]askPart {
	parts := map[string]askPart{}
	for _, s := range p.Sources {
		if s, is := s.(*slack.Source); is {
			parts[fleetSlack] = s.Team
		}
	}
	hub, is := p.Forge.(*githubforge.Forge)
	if !is {
		return parts
	}
	site, _ := url.Parse(p.Config.GitHub.URL) // config has checked it
	if id := p.Config.GitHub.AppID; id != 0 {
		parts[fleetApp] = func(context.Context) (string, error) { return fmt.Sprintf("%d of %s", id, site.Host), nil }
	} else {
		parts[fleetAccount] = func(ctx context.Context) (string, error) {
			login, err := hub.Login(ctx)
			return strings.ToLower(login) + " of " + site.Host, err
		}
	}
	return parts
}

// joinFleet makes sure that the data in Redis belongs to this process's fleet. unknown says which services did not tell
// their parts of the identity, which then were not compared.
func (p *Parts) joinFleet(ctx context.Context) (known map[string]string, unknown, err error) {
	own, unknown := p.identity(ctx)
	known, err = p.Store.Doctor.Join(ctx, own)
	if errors.Is(err, store.ErrOtherFleet) {
		return known, nil, fmt.Errorf("%w: it has the tasks of %s, and this process is of %s. Give each fleet a Redis "+
			"of its own (REDIS_URL). If they are one fleet with a new workspace, GitHub account or name, stop its "+
			"processes and remove the old identity: redis-cli -u \"$REDIS_URL\" DEL errand:fleet", err, describe(known),
			describe(own))
	}
	return known, unknown, err
}

// describe lists the parts of an identity.
func describe(parts map[string]string) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		list = append(list, name+" "+parts[name])
	}
	return strings.Join(list, ", ")
}

// awaitFleet returns an error once this process turns out to belong to another fleet than the data in Redis. It returns
// nil when the whole identity has been compared, or when ctx ends.
func (p *Parts) awaitFleet(ctx context.Context) error {
	if !p.joined {
		p.Log.Warn("the whole identity of the fleet is not known yet: it is compared later")
	}
	for !p.joined && ctx.Err() == nil {
		if err := p.checkFleet(ctx); err != nil {
			return err
		}
		if !p.joined {
			pause(ctx, identityAgain)
		}
	}
	return nil
}

// checkFleet returns an error if this process must not use this Redis.
func (p *Parts) checkFleet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, diagnoseLimit)
	defer cancel()
	_, unknown, err := p.joinFleet(ctx)
	if errors.Is(err, store.ErrOtherFleet) {
		return fmt.Errorf("start: %w", err)
	}
	p.joined = unknown == nil && err == nil
	return nil
}

// diagnoseFleet says for doctor whose data is in Redis.
func (p *Parts) diagnoseFleet(ctx context.Context) []doctor.Finding {
	known, _, err := p.joinFleet(ctx)
	if errors.Is(err, store.ErrOtherFleet) {
		return []doctor.Finding{{
			What: store.ErrOtherFleet.Error(), Why: err.Error(), Fatal: true,
			Remedy: "Stop this process, and give it the right REDIS_URL.",
		}}
	}
	if err != nil {
		return nil // the findings about Redis say so
	}
	return []doctor.Finding{{What: "Redis has the data of the fleet: " + describe(known)}}
}

// pause returns after d or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
