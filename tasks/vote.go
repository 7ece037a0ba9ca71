package tasks

import (
	"cmp"
	"context"
	"maps"
	"slices"
)

// Vote is a person's rating of a task's answer.
type Vote struct {
	Person string `json:"person"`           // the configured name, or the account in the task's source
	Vote   string `json:"vote"`             // good or bad
	Reason string `json:"reason,omitempty"` // of a bad one
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
		list = append(list, Vote{
			Person: cmp.Or(one.Name, account), Vote: votes[account].Vote, Reason: votes[account].Reason,
		})
	}
	return list, err
}
