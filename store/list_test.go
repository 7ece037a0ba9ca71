package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
)

// A filter finds all matches, however far apart, or List returns where to continue.
func TestListChooses(t *testing.T) {
	onRedis(t, func(h *harness) {
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
