package people

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

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

// OfferHash returns the name under which Redis has an offer.
func OfferHash(code string) string {
	sum := sha256.Sum256([]byte("link " + code))
	return hex.EncodeToString(sum[:])
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
