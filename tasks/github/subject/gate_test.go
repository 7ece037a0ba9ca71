package subject

import (
	"testing"
	"time"

	"github.com/google/go-github/v60/github"
)

// The author of a comment saw the state of a second before.
func TestMovedSince(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 8, 0, 10, 0, time.UTC)
	for pushed, want := range map[time.Duration]bool{-time.Second: false, 0: true, time.Second: true} {
		pr := &github.PullRequest{Head: &github.PullRequestBranch{Repo: &github.Repository{PushedAt: &github.Timestamp{Time: at.Add(pushed)}}}}
		if MovedSince(pr, at) != want || MovedSince(pr, at.Add(900*time.Millisecond)) != want {
			t.Errorf("pushed %s after the word: want %t", pushed, want)
		}
	}
	if MovedSince(new(github.PullRequest), at) {
		t.Error("a fork that is gone has moved")
	}
}
