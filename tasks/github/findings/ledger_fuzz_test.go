package findings

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever agents answer and people do: names are unique, what is final stays quiet, and a second closing says what the
// first said.
func FuzzLedger(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte("the same again the same again the same again"))
	f.Fuzz(func(t *testing.T, script []byte) {
		next := func(n int) int {
			if len(script) == 0 {
				return 0
			}
			b := script[0]
			script = script[1:]
			return int(b) % n
		}
		claims := []string{closes, closes2, races, "Parse panics on an empty line", ""}
		l := &Ledger{}
		for round := 0; len(script) > 0 && round < 20; round++ {
			var a Answer
			for range next(5) {
				a.Findings = append(a.Findings, at(next(40), severities[next(3)], claims[next(len(claims))]))
			}
			for _, k := range l.Known {
				a.Earlier = append(a.Earlier, Checked{
					ID: k.ID, Status: []Status{Open, Fixed, Outdated, Dismissed}[next(4)],
				})
			}
			final := l.Final()
			in := Input{Task: fmt.Sprint(round), Head: fmt.Sprint("h", next(9)), Full: next(2) == 1, Answer: a}
			p := l.Settle(in)
			body, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var other Ledger
			if err := json.Unmarshal(body, &other); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(p, other.Settle(in)); diff != "" {
				t.Fatalf("another process says something else:\n%s", diff)
			}
			for _, fnd := range p.Inline {
				if !nameForm.MatchString(fnd.ID) || l.find(fnd.ID) >= 0 {
					t.Fatalf("name %q", fnd.ID)
				}
				for _, k := range final {
					if here(k, fnd) > 0 {
						t.Fatalf("%+v was final and is said again: %+v", k, fnd)
					}
				}
			}
			for _, k := range p.StillOpen {
				if k.Answered || k.Status != Open {
					t.Fatalf("still open: %+v", k)
				}
			}
			if next(4) > 0 {
				l.Told(in.Task, p)
			}
			var threads []Thread
			for _, k := range l.Known {
				threads = append(threads, Thread{
					ID: "T" + k.ID, Finding: k.ID, Path: k.Path, Line: next(40), Resolved: next(3) == 0,
					Ours: next(2) == 0, Answered: next(3) == 0, DismissedBy: []string{"", "ben"}[next(2)],
				})
			}
			l.Observe(threads)
			names := map[string]bool{}
			for _, k := range l.Known {
				if names[k.ID] {
					t.Fatalf("%s twice", k.ID)
				}
				names[k.ID] = true
			}
			if size(l) > maxLedger {
				t.Fatal("too large")
			}
		}
	})
}
