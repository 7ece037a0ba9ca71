package tasks

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Link says that an account in Slack and an account of the forge belong to one person. The person asks for it in Slack
// and proves it by a login at the forge.
type Link struct {
	User  string    `json:"user"`            // the ID in Slack
	Name  string    `json:"name"`            // in Slack; people choose it themselves
	Team  string    `json:"team"`            // the ID of the workspace
	Site  string    `json:"site,omitempty"`  // the URL of the workspace; empty if it is not errand's own
	Login string    `json:"login,omitempty"` // on the forge; empty if the link is only offered
	ID    int64     `json:"id,omitempty"`    // of that account, which the next owner of its login does not have
	Until time.Time `json:"until"`           // when the link or the offer ends
}

const (
	// LinkTime is how long a link counts.
	LinkTime = 180 * 24 * time.Hour
	// OfferTime is how long a person may take to confirm a link.
	OfferTime = 10 * time.Minute
)

// OfferLink offers to link an account in Slack. It returns a code with which the offer can be confirmed once. Redis has
// only the hash of the code.
func OfferLink(ctx context.Context, d *Desk, l Link) (code string, err error) {
	if one, _ := d.policy.People.Find(slackSource, l.User); one.GitHub != "" {
		return "", &InputError{Sentence: fmt.Sprintf("An operator has set your account on GitHub: %s.", one.GitHub)}
	}
	l.Login, l.Until = "", time.Now().Add(OfferTime)
	body, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("marshal link: %w", err)
	}
	code = rand.Text()
	return code, d.store.Logins.Save(ctx, OfferHash(code), body, OfferTime)
}

// OfferHash returns the name under which Redis has an offer.
func OfferHash(code string) string {
	sum := sha256.Sum256([]byte("link " + code))
	return hex.EncodeToString(sum[:])
}

// Unlink removes the link of an account in Slack. It reports whether there was one.
func Unlink(ctx context.Context, d *Desk, user string) (bool, error) {
	return d.store.Links.Remove(ctx, user)
}

// ListLinks returns the links that count now.
func ListLinks(ctx context.Context, s *store.Links) ([]Link, error) {
	all, err := s.All(ctx)
	list := make([]Link, 0, len(all))
	for _, body := range all {
		var l Link
		if json.Unmarshal([]byte(body), &l) == nil && time.Now().Before(l.Until) {
			list = append(list, l)
		}
	}
	return list, err
}

// MayLink decides whether a link may be made beside others.
func (p People) MayLink(l Link, others []Link) policy.Verdict {
	var o policy.Object
	for _, one := range p {
		own := one.Slack == l.User
		o.Mapped = o.Mapped || own && one.GitHub != "" ||
			!own && one.Slack != "" && strings.EqualFold(one.GitHub, l.Login)
	}
	for _, other := range others {
		if other.User != l.User && strings.EqualFold(other.Login, l.Login) {
			o.LinkedTo = other.Name + " (" + other.User + ")"
		}
	}
	return policy.Decide(policy.Subject{Name: l.Login}, policy.Link, o, policy.Posture{})
}

// linked returns the account on the forge that a person has linked to their account in Slack, and its number;
// "" without a link, if the operator has set one, or permits no links.
func (p Policy) linked(ctx context.Context, s *store.Store, user string) (login string, id int64, err error) {
	if p.Rights == nil || !p.Rights.Links {
		return "", 0, nil
	}
	body, err := s.Links.Read(ctx, user)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", 0, err
	}
	var l Link // zero, which has ended, if there is none
	if json.Unmarshal(body, &l) != nil {
		l = Link{}
	}
	if !time.Now().Before(l.Until) || !p.People.MayLink(l, nil).Allowed {
		return "", 0, nil
	}
	return l.Login, l.ID, nil
}

// loginOf returns the submitter's login on the forge, as the front door or a link gives it, or "" if unknown.
func loginOf(ctx context.Context, d *Desk, t Task) (string, error) {
	if t.Source == slackSource {
		login, _, err := d.policy.linked(ctx, d.store, t.Actor)
		return login, err
	}
	return VisitorOf(ctx).Login, nil
}
