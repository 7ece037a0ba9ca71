package desk

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/google/go-cmp/cmp"
)

var staff = people.People{{Name: "Ann Lee", Slack: "U1", GitHub: "ann-acme"}, {Name: "bob", GitHub: "Bob"}}

func TestPeople(t *testing.T) {
	t.Parallel()
	for who, want := range map[[2]string]string{
		{"slack", "U1"}: "Ann Lee", {"github", "ANN-acme"}: "Ann Lee", {"github", "bob"}: "bob",
		{"slack", "ann-acme"}: "ann-acme", {"slack", ""}: "", {"chat", "U1"}: "U1",
	} {
		if got := staff.NameOf(tasks.Task{Source: who[0], Actor: who[1]}); got != want {
			t.Errorf("%s is %q, want %q", who, got, want)
		}
	}
	for who, want := range map[string][]string{
		"": nil, "ann lee": {"ann lee", "user:Ann Lee", "user:slack/U1", "user:github/ann-acme"}, "U9": {"U9"},
		"slack/u1": {"slack/u1", "user:Ann Lee", "user:slack/U1", "user:github/ann-acme"},
		"bob":      {"bob", "user:bob", "user:github/Bob"},
	} {
		if diff := cmp.Diff(want, staff.Filter(who)); diff != "" {
			t.Errorf("%q: %s", who, diff)
		}
	}
}

// Tasks by several accounts of one person should have one name, be found by it, and count in one row.
func TestOnePersonInSeveralSources(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.desk.policy.People = staff
	var mine []string
	for thread, who := range map[string][2]string{
		"a": {"slack", "U1"}, "b": {"github", "ann-acme"}, "c": {"slack", "U2"},
	} {
		task := f.task(thread, "x")
		task.ID = tasks.NewID(time.UnixMicro(1_700_000_000_000_100+int64(thread[0])), who[0], thread)
		task.Source, task.Thread, task.Actor = who[0], who[0]+"/"+thread, who[1]
		id := f.submit(task)
		if who[1] != "U2" {
			mine = append(mine, id)
		}
		claim, err := f.store.Claim(t.Context(), id, 0, "w")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := claim.Spend(t.Context(), store.Expense{USD: 1, Model: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	if l, err := f.desk.List(t.Context(), Filter{Person: "Ann Lee"}); err != nil || len(l.Tasks) != 2 ||
		l.Tasks[0].Person != "Ann Lee" {
		t.Errorf("her tasks are %+v, %v", l, err)
	}
	for _, id := range mine {
		if s, err := f.desk.Status(t.Context(), id); err != nil || s.Person != "Ann Lee" || s.Name() != "Ann Lee" {
			t.Errorf("%s asked, %v", s.Name(), err)
		}
	}
	now := time.Now()
	query := CostQuery{First: now.AddDate(0, 0, -1), Last: now.AddDate(0, 0, 1), By: []CostGroup{ByPerson}}
	costs, err := f.desk.Costs(t.Context(), query)
	got := map[string]float64{}
	for _, row := range costs.Rows {
		got[row.Person] = row.USD
	}
	if diff := cmp.Diff(map[string]float64{"Ann Lee": 2, "slack/U2": 1}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	query.Person = "ann lee"
	if costs, err := f.desk.Costs(t.Context(), query); err != nil || costs.Total.USD != 2 {
		t.Errorf("hers are %+v, %v", costs, err)
	}
}

// An account with the name of a person belongs to someone else, unless a filter asks for that name in every source.
func TestAccountWithTheNameOfAPerson(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.desk.policy.People = people.People{{Name: "ann", Slack: "U1", GitHub: "ann-smith"}}
	var theirs []string
	for _, who := range [][2]string{{"slack", "U1"}, {"github", "ann-smith"}, {"github", "ann"}, {"slack", "U2"}} {
		task := f.task("a", "x")
		task.Source, task.Actor = who[0], who[1]
		theirs = append(theirs, f.submit(task))
	}
	for person, want := range map[string]int{
		"slack/U1": 2, "github/ann-smith": 2, "ann-smith": 2, "U1": 2, "ann": 3, "github/ann": 1, "slack/U2": 1,
	} {
		l, err := f.desk.List(t.Context(), Filter{Person: person})
		if err != nil || len(l.Tasks) != want {
			t.Errorf("%s has %d tasks, want %d of %q: %v", person, len(l.Tasks), want, theirs, err)
		}
	}
}

// The votes on an answer have the names of people: the configured one, also of an asker who is known by their login on
// the forge, or else that in the source.
func TestNamesOfVoters(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.desk.policy.People = staff
	task := f.task("a", "x")
	task.Source, task.Actor = "chat", "U7"
	if _, err := f.desk.Submit(people.WithVisitor(t.Context(), people.Visitor{Login: "Ann-Acme", Role: policy.Admin}), task); err != nil {
		t.Fatal(err)
	}
	if _, err := f.desk.Cancel(t.Context(), task.ID, "x"); err != nil {
		t.Fatal(err)
	}
	for account, name := range map[string]string{"U7": "ann", "U8": "", "U9": "Bea"} {
		if _, err := f.desk.CastVote(t.Context(), task.ID, account, tasks.Vote{Person: name, Vote: "good"}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := f.desk.Status(t.Context(), task.ID)
	if diff := cmp.Diff([]tasks.Vote{
		{Person: "Ann Lee", Vote: "good"}, {Person: "U8", Vote: "good"}, {Person: "Bea", Vote: "good"},
	}, s.Votes); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
