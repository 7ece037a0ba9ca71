package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
)

// A filter finds all matches, however far apart, or List returns where to continue.
func TestListChooses(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		var all []string
		for n := range glance + 10 {
			rec := task(n)
			rec.Thread, rec.Task, rec.Scopes = rec.ID, json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
				[]string{fmt.Sprintf("mod:%d", n%100)}
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
			all = append(all, rec.ID)
		}
		must(s.EndWaiting(ctx, all[7], nil))
		head := func(r Record) bool {
			if r.ID == "" || r.Class != "review" || r.State == "" {
				h.Errorf("the head lacks something: %+v", r)
			}
			return slices.Equal(r.Scopes, []string{"mod:7"})
		}
		for name, test := range map[string]struct {
			query ListQuery
			want  []int
			next  string
		}{
			"by its head":   {ListQuery{Head: head}, []int{507, 407, 307, 207, 107, 7}, ""},
			"and its state": {ListQuery{Head: head, State: Ended}, []int{7}, ""},
			"a page":        {ListQuery{Head: head, Limit: 2, Before: all[500]}, []int{407, 307}, all[307]},
			"by all of it": {ListQuery{
				Head: head, Match: func(r Record) bool { return string(r.Task) == `{"n":107}` },
			}, []int{107}, ""},
			"as far as it looked": {ListQuery{Head: head, Look: 1}, []int{507, 407, 307, 207, 107}, all[10]},
			"and from there on":   {ListQuery{Head: head, Look: 1, Before: all[10]}, []int{7}, ""},
		} {
			page := must(s.List(ctx, test.query))
			var want, got []string
			for _, n := range test.want {
				want = append(want, all[n])
			}
			for _, r := range page.Records {
				got = append(got, r.ID)
			}
			if !slices.Equal(got, want) || page.Next != test.next {
				h.Errorf("%s: %v, then %q; want %v, then %q", name, got, page.Next, want, test.next)
			}
		}
		for _, id := range all[300:] { // expired
			h.rdb.Del(ctx, "errand:task:"+id)
		}
		if page := must(s.List(ctx, ListQuery{Head: head})); len(page.Records) != 3 {
			h.Errorf("%d records over those that have expired, want 3", len(page.Records))
		}
	})
}

// Unended counts what has not ended, by the indexes or by the heads, and stops after it has looked far enough.
func TestUnended(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		var running, waiting []string
		for n := range glance + 20 {
			rec := task(n)
			rec.Thread, rec.Scopes = rec.ID, []string{fmt.Sprintf("mod:%d", n%10)}
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
			switch n % 10 {
			case 1:
				h.claim(s, rec.ID)
				running = append([]string{rec.ID}, running...)
			case 2:
				must(s.EndWaiting(ctx, rec.ID, nil))
			default:
				waiting = append([]string{rec.ID}, waiting...)
			}
		}
		ones := func(r Record) bool { return r.Scopes[0] == "mod:1" || r.Scopes[0] == "mod:3" }
		var threes []string
		for _, id := range waiting {
			if must(s.Get(ctx, id)).Scopes[0] == "mod:3" {
				threes = append(threes, id)
			}
		}
		for name, test := range map[string]struct {
			query ListQuery
			want  Unended
		}{
			"all": {ListQuery{Limit: 5}, Unended{Counts{Waiting: 416, Running: 52}, running, waiting[:5], false}},
			"filtered": {ListQuery{Limit: 5, Head: ones}, Unended{
				Counts{Waiting: 52, Running: 52}, running, threes[:5], false,
			}},
		} {
			if got := must(s.Unended(ctx, test.query)); !reflect.DeepEqual(got, test.want) {
				h.Errorf("%s: %+v, want %+v", name, got, test.want)
			}
		}
		// The newest live tasks do not reach back to the first ones, which match as well.
		for n := range 2 * glance {
			rec := task(1000 + n)
			rec.Thread = rec.ID
			_, _, err := s.Submit(ctx, rec)
			h.ok(err)
		}
		far := ListQuery{Limit: 5, Look: 1, Head: func(r Record) bool { return r.Scopes != nil }}
		if got := must(s.Unended(ctx, far)); !got.Partial || got.Waiting != 0 {
			h.Errorf("it looked at everything: %+v", got)
		}
	})
}
