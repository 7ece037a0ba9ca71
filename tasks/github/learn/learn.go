// Package learn counts what people do with the findings of reviews in a repository, and finds what a team dismisses
// again and again.
//
// It promises:
//   - A finding is counted once, even if its outcome is added again.
//   - A [Record] is bounded.
//   - Each problem becomes a lesson at most once, when three findings about it were dismissed in three pull requests,
//     or in two by two people, and the text of a lesson cannot say more than its place allows: a hostile pull request
//     can influence the claim of a finding.
//
// It proposes nothing itself and calls no service. A Record is plain data, which only one goroutine may use at a time.
package learn

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// Bounds. The store takes 256 KiB for a record.
const (
	enough        = 3 // dismissals that make a lesson
	maxDismissals = 150
	maxCounted    = 500 // findings that are recognized if they are added again
	maxLessons    = 50
	maxClaim      = 120 // characters
	maxURL        = 300 // bytes
)

// again is how long after an attempt to propose a lesson the next one may begin: the first may still succeed.
const again = time.Hour

// Record is what is known of the findings of one repository.
type Record struct {
	Counts map[string]tasks.Acceptance `json:"counts,omitempty"` // by kind
	// the newest findings in Counts, by ID and pull request
	Counted    []string    `json:"counted,omitempty"`
	Dismissals []Dismissal `json:"dismissals,omitempty"` // the newest, the newest last
	Lessons    []Lesson    `json:"lessons,omitempty"`    // the newest, the newest last
}

// Dismissal is a finding that a person with write access has dismissed.
type Dismissal struct {
	Kind  string `json:"kind"`
	Claim string `json:"claim"` // harmless: see neutral
	URL   string `json:"url"`

	Number int    `json:"number,omitempty"` // of the pull request
	By     string `json:"by,omitempty"`
}

// Lesson is a problem that a team has dismissed often enough.
type Lesson struct {
	Dismissal
	Links    []string  `json:"links"`              // to the dismissed findings
	Tried    time.Time `json:"tried,omitzero"`     // when an attempt to propose it began
	Done     bool      `json:"done,omitempty"`     // it is proposed, or the base branch has its line
	Proposed string    `json:"proposed,omitempty"` // URL of the pull request
}

// Result is a finding with its outcome and its place.
type Result struct {
	review.Judged
	Number int    // of the pull request
	URL    string // of the finding
}

// Add counts results.
func (r *Record) Add(results []Result) {
	for _, one := range results {
		key := fmt.Sprintf("%d/%s", one.Number, one.ID)
		if slices.Contains(r.Counted, key) {
			continue
		}
		r.Counted = append(r.Counted, key)
		r.count(one)
		if one.Outcome == review.Rejected {
			r.dismissed(one)
		}
	}
	r.Counted = r.Counted[max(0, len(r.Counted)-maxCounted):]
	r.Dismissals = r.Dismissals[max(0, len(r.Dismissals)-maxDismissals):]
	r.Lessons = r.Lessons[max(0, len(r.Lessons)-maxLessons):]
}

// count adds a result to the counts of its kind.
func (r *Record) count(one Result) {
	if r.Counts == nil {
		r.Counts = map[string]tasks.Acceptance{}
	}
	c := r.Counts[one.Kind.Name()]
	switch c.Kind = one.Kind.Name(); one.Outcome {
	case review.Accepted:
		c.Fixed++
	case review.Rejected:
		c.Dismissed++
	case review.Ignored:
		c.Ignored++
	}
	r.Counts[c.Kind] = c
}

// dismissed records a dismissal, and the lesson if it is one of enough about the same problem.
func (r *Record) dismissed(one Result) {
	d := Dismissal{Kind: one.Kind.Name(), Claim: neutral(one.Claim), URL: one.URL, Number: one.Number, By: one.By}
	if d.Claim == "" || len(d.URL) > maxURL {
		return
	}
	r.Dismissals = append(r.Dismissals, d)
	if slices.ContainsFunc(r.Lessons, func(l Lesson) bool { return l.same(d) }) {
		return
	}
	var links []string
	pulls, people := map[int]bool{}, map[string]bool{}
	for _, before := range r.Dismissals {
		if before.same(d) {
			links = append(links, before.URL)
			pulls[before.Number], people[before.By] = true, true
		}
	}
	delete(pulls, 0) // of old entries, which have neither
	delete(people, "")
	if len(links) >= enough && (len(pulls) >= enough || len(pulls) > 1 && len(people) > 1) {
		r.Lessons = append(r.Lessons, Lesson{Dismissal: d, Links: links[len(links)-enough:]})
	}
}

// same reports whether two dismissals are about the same problem.
func (d Dismissal) same(o Dismissal) bool {
	return d.Kind == o.Kind && review.Similar(d.Claim, o.Claim)
}

// Next returns the next lesson to propose, or nil, and records the attempt.
func (r *Record) Next(now time.Time) *Lesson {
	for i := range r.Lessons {
		if l := &r.Lessons[i]; !l.Done && !now.Before(l.Tried.Add(again)) {
			l.Tried = now
			return l
		}
	}
	return nil
}

// Done records that the lesson with a key is settled, by a pull request if url is set, so that it is not proposed
// again.
func (r *Record) Done(key, url string) {
	for i := range r.Lessons {
		if l := &r.Lessons[i]; l.Key() == key {
			l.Done, l.Proposed = true, url
		}
	}
}

// Acceptance returns the counts, by kind.
func (r *Record) Acceptance() []tasks.Acceptance {
	var all []tasks.Acceptance
	for _, c := range r.Counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b tasks.Acceptance) int { return cmp.Compare(a.Kind, b.Kind) })
	return all
}

// Key identifies the problem in the repository: [0-9a-f]{12}.
func (l Lesson) Key() string {
	sum := sha256.Sum256([]byte(l.Kind + "\x00" + l.Claim))
	return hex.EncodeToString(sum[:6])
}

// Line returns the line for the review instructions: at most 200 characters, in errand's words except for the claim.
func (l Lesson) Line() string { return fmt.Sprintf("findings like %q (%s)", l.Claim, l.Kind) }

// neutral returns the words of a claim as one line of visible letters with their marks, digits and a few signs that are
// no markup and end no quotation.
func neutral(claim string) string {
	claim = strings.Map(func(r rune) rune {
		hidden := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
		if !hidden && unicode.In(r, unicode.Letter, unicode.Mark, unicode.Digit) ||
			strings.ContainsRune(".,;'-_=+%", r) {
			return r
		}
		return ' '
	}, html.UnescapeString(claim))
	// the mark of a quotation mark
	claim = strings.TrimLeftFunc(claim, func(r rune) bool { return r == ' ' || unicode.IsMark(r) })
	claim = strings.Join(strings.Fields(claim), " ")
	if letters := []rune(claim); len(letters) > maxClaim {
		claim = string(letters[:maxClaim-1]) + "…"
	}
	return claim
}
