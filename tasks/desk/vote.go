package desk

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// CastVote records the vote of an account in the task's source, whose name there is v.Person, and returns the vote that
// counts: the first one of each person.
func (d *Desk) CastVote(ctx context.Context, task, account string, v tasks.Vote) (counts string, err error) {
	name := untrusted.Line(v.Person, 100)
	return d.store.Votes.Vote(ctx, task, account, store.Vote{Vote: v.Vote, Name: name, Reason: v.Reason})
}

// readVotes returns the votes on a task's answer, by account.
func (d *Desk) readVotes(ctx context.Context, t tasks.Task) (list []tasks.Vote, err error) {
	votes, err := d.store.Votes.Of(ctx, t.ID)
	for _, account := range slices.Sorted(maps.Keys(votes)) {
		by := tasks.Asker{Source: t.Source, Account: account}
		if account == t.Actor {
			by.Login = t.Login
		}
		one, _ := d.policy.People.Of(by)
		v := votes[account]
		list = append(list, tasks.Vote{Person: cmp.Or(one.Name, v.Name, account), Vote: v.Vote, Reason: v.Reason})
	}
	return list, err
}
