package rights

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
)

// ListLinks returns the links that count now.
func ListLinks(ctx context.Context, s *store.Links) ([]people.Link, error) {
	all, err := s.All(ctx)
	list := make([]people.Link, 0, len(all))
	for _, body := range all {
		var l people.Link
		if json.Unmarshal(body, &l) == nil && time.Now().Before(l.Until) {
			list = append(list, l)
		}
	}
	return list, err
}

// Linked returns the account on the forge that a person has linked to their account in Slack, and its number;
// "" without a link, if the operator has set one, or permits no links.
func (p Policy) Linked(ctx context.Context, s *store.Store, user string) (login string, id int64, err error) {
	if p.Rights == nil || !p.Rights.Links {
		return "", 0, nil
	}
	body, err := s.Links.Read(ctx, user)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", 0, err
	}
	var l people.Link // zero, which has ended, if there is none
	if json.Unmarshal(body, &l) != nil {
		l = people.Link{}
	}
	if !time.Now().Before(l.Until) || !p.People.MayLink(l, nil).Allowed {
		return "", 0, nil
	}
	return l.Login, l.ID, nil
}
