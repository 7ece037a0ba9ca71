package rights

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Conversation is what Rights must know about a session. The worker stores it in the notes of the session.
type Conversation struct {
	// Repos are the repositories that its runs have worked in; "" means work without one. Nil: they are not known.
	Repos []string `json:"repos"`
}

// ConversationOf returns what is known of the session of a thread.
func ConversationOf(ctx context.Context, s *store.Store, thread string) (past Conversation, err error) {
	notes, err := s.Threads.SessionMeta(ctx, thread)
	if errors.Is(err, store.ErrNotFound) {
		return Conversation{Repos: []string{}}, nil
	}
	if err == nil && json.Unmarshal(notes, &past) != nil {
		past.Repos = nil
	}
	return past, err
}

// remembered returns the other repositories that the conversation of a task's thread has been about.
func remembered(ctx context.Context, s *store.Store, t tasks.Task) (Conversation, error) {
	past, err := ConversationOf(ctx, s, t.Thread)
	past.Repos = slices.DeleteFunc(past.Repos, func(repo string) bool { return repo == "" || t.Has(repo) })
	return past, err
}

// unasked reports whether no person has asked for a task, or for it to be retried.
func unasked(t tasks.Task) bool { return t.Unasked && t.Retrier == (tasks.Asker{}) }

// Apart reports whether a task has to begin a new conversation: no person has asked for it whose rights could be
// checked, and the conversation of its thread has been about other repositories, or it is not known about which.
func (p Policy) Apart(ctx context.Context, s *store.Store, t tasks.Task) (bool, error) {
	if !p.limits() || !unasked(t) {
		return false, nil
	}
	past, err := remembered(ctx, s, t)
	if past.Repos == nil {
		return !strings.HasPrefix(t.Thread, t.Source+"/"), err
	}
	return len(past.Repos) > 0, err
}
