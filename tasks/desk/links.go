package desk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
)

// OfferLink offers to link an account in Slack. It returns a code with which the offer can be confirmed once. Redis has
// only the hash of the code.
func (d *Desk) OfferLink(ctx context.Context, l people.Link) (code string, err error) {
	if one, _ := d.policy.People.Find(people.SlackSource, l.User); one.GitHub != "" {
		why := fmt.Sprintf("An operator has set your account on GitHub: %s.", one.GitHub)
		return "", &tasks.InputError{Sentence: why}
	}
	l.Login, l.Until = "", time.Now().Add(people.OfferTime)
	body, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("marshal link: %w", err)
	}
	code = rand.Text()
	return code, d.store.Logins.Save(ctx, people.OfferHash(code), body, people.OfferTime)
}

// Unlink removes the link of an account in Slack. It reports whether there was one.
func (d *Desk) Unlink(ctx context.Context, user string) (bool, error) {
	return d.store.Links.Remove(ctx, user)
}

// loginOf returns the submitter's login on the forge, as the front door or a link gives it, or "" if unknown.
func (d *Desk) loginOf(ctx context.Context, t tasks.Task) (string, error) {
	if t.Source == people.SlackSource {
		login, _, err := d.policy.Linked(ctx, d.store, t.Actor)
		return login, err
	}
	return people.VisitorOf(ctx).Login, nil
}
