package tasks

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
)

// Vote is a person's rating of a task's answer.
type Vote struct {
	Person string `json:"person"`           // the configured name, the source's, or the account
	Vote   string `json:"vote"`             // good or bad
	Reason string `json:"reason,omitempty"` // of a bad one
}

// CastVote records the vote of an account in the task's source, whose name there is v.Person, and returns the vote that
// counts: the first one of each person.
func CastVote(ctx context.Context, d *Desk, task, account string, v Vote) (counts string, err error) {
	name := untrusted.Line(v.Person, 100)
	return d.store.Votes.Vote(ctx, task, account, store.Vote{Vote: v.Vote, Name: name, Reason: v.Reason})
}

// readVotes returns the votes on a task's answer, by account.
func readVotes(ctx context.Context, d *Desk, t Task) (list []Vote, err error) {
	votes, err := d.store.Votes.Of(ctx, t.ID)
	for _, account := range slices.Sorted(maps.Keys(votes)) {
		by := Asker{Source: t.Source, Account: account}
		if account == t.Actor {
			by.Login = t.Login
		}
		one, _ := d.policy.People.of(by)
		v := votes[account]
		list = append(list, Vote{Person: cmp.Or(one.Name, v.Name, account), Vote: v.Vote, Reason: v.Reason})
	}
	return list, err
}
