package store

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVote(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		for _, v := range [][4]string{
			{"ann", "good", "", "good"},
			{"bob", "bad", "", "bad"},
			{"ann", "bad", "no", "good"},
			{"bob", "bad", "wrong\nline", "bad"},
			{"bob", "bad", "", "bad"},
			{"carol", "bad", "first", "bad"},
			{"carol", "bad", "second", "bad"},
		} {
			if stands, err := s.Votes.Vote(h.Context(), "1", v[0], Vote{v[1], "Name of " + v[0], v[2]}); err != nil ||
				stands != v[3] {
				h.Errorf("%s votes %s: %q, %v", v[0], v[1], stands, err)
			}
		}
		got, err := s.Votes.Of(h.Context(), "1")
		if diff := cmp.Diff(map[string]Vote{
			"ann": {"good", "Name of ann", ""}, "bob": {"bad", "Name of bob", "wrong\nline"},
			"carol": {"bad", "Name of carol", "second"},
		}, got); diff != "" || err != nil {
			h.Errorf("votes: %v, %s", err, diff)
		}
		if ttl := s.redis.PTTL(h.Context(), s.key("votes", "1")).Val(); ttl <= 0 || ttl > s.cfg.Retention {
			h.Errorf("kept for %s", ttl)
		}
		for i := range maxVoters - 3 {
			if _, err := s.Votes.Vote(h.Context(), "1", fmt.Sprint(i), Vote{Vote: "good"}); err != nil {
				h.Fatal(err)
			}
		}
		if _, err := s.Votes.Vote(h.Context(), "1", "one more", Vote{"good", "", "why"}); err == nil {
			h.Error("the number of voters is not bounded")
		}
		if stands, err := s.Votes.Vote(h.Context(), "1", "bob", Vote{"good", "", "now"}); err != nil ||
			stands != "bad" {
			h.Errorf("voted again: %q, %v", stands, err)
		}
	})
}
