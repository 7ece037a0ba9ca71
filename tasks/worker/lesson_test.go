package worker

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
)

// teacher is a source with one lesson, until it is proposed.
type teacher struct {
	*fakeSource
	lesson   *tasks.Lesson
	proposed []string
}

func (s *teacher) NextLesson(context.Context, string) (*tasks.Lesson, error) { return s.lesson, nil }

func (s *teacher) Proposed(_ context.Context, _, key, url string) error {
	s.lesson, s.proposed = nil, append(s.proposed, key+" "+url)
	return nil
}

const taught = `findings like "It lacks - a comment" (tests)`

// lessons is a fleet with such a source. The run of a review changes nothing.
func lessons(t *testing.T, change ...func(*Config)) (*remote, *hub, *teacher) {
	t.Helper()
	r, h, with := publishingFleet(t, func(*remote, agent.Spec) {})
	s := &teacher{fakeSource: r.source, lesson: &tasks.Lesson{
		Key: "0123456789ab", Line: taught, Links: []string{"https://hub.example/1", "https://hub.example/2"},
	}}
	sources := func(c *Config) { c.Sources = []tasks.Source{s} }
	r.worker(append([]func(*Config){r.disk(t.TempDir()), with, sources}, change...)...)
	return r, h, s
}

// reads is the task of a review.
func (r *remote) reads() tasks.Task {
	t := r.repoTask("a")
	t.Profile = agent.Read
	return t
}

// A lesson becomes one draft pull request with one more line for the review instructions of the base branch.
func TestLessonsAreProposed(t *testing.T) {
	t.Parallel()
	r, h, s := lessons(t)
	r.declare("main", "# ours\nreview: # why\n  severity: major\n")
	h.fail = func(n int) error {
		if n == 1 {
			return errors.New("the forge is down")
		}
		return nil
	}
	for i, want := range []int{0, 1, 1} { // the second run finds the branch of the first
		if e := r.ending(r.submit(r.reads())); e.Kind != tasks.Answered || len(h.proposed()) != want {
			t.Fatalf("%d: ending = %+v, proposed %+v", i, e, h.proposed())
		}
	}
	if want := []string{"0123456789ab https://hub.example/7"}; !slices.Equal(s.proposed, want) {
		t.Errorf("recorded %q, want %q", s.proposed, want)
	}
	const branch = lessonBranch + "0123456789ab"
	bare := filepath.Join(r.root, "acme", "api.git")
	if text := r.git(bare, "show",
		branch+":"+environment.File); text != "# ours\nreview: # why\n  severity: major\n  unwanted:\n    - "+taught {
		t.Errorf("the file is %s", text)
	}
	if got := r.git(bare, "diff", "--name-only", "main", branch); got != environment.File {
		t.Errorf("it changes %s", got)
	}
	if w := h.proposed()[0]; w.Branch != branch || w.Base != "main" ||
		!strings.Contains(w.Summary, "```\n"+taught+"\n```\n\n- https://hub.example/1\n- https://hub.example/2") {
		t.Errorf("proposed %+v", w)
	}
}

// Nothing is proposed where errand may not write, for untrusted code, or what the base branch has.
func TestLessonsThatAreNotProposed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file     string
		profile  agent.Profile
		allowed  agent.Profile
		recorded string
	}{
		"listed":    {"review:\n  unwanted: ['" + taught + "']\n", agent.Read, agent.Write, "0123456789ab "},
		"another":   {"review: none\n", agent.Read, agent.Write, ""},
		"full":      {"review:\n  unwanted: [" + strings.Repeat("x, ", 50) + "]\n", agent.Read, agent.Write, ""},
		"untrusted": {"", agent.Untrusted, agent.Write, ""},
		"read only": {"", agent.Read, agent.Read, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, h, s := lessons(t, func(conf *Config) {
				conf.Policy.Repository = func(string) (tasks.Repository, bool) {
					return tasks.Repository{Profile: c.allowed}, true
				}
			})
			r.declare("main", c.file)
			task := r.reads()
			task.Profile = c.profile
			id := r.submit(task)
			if e := r.ending(id); e.Kind != tasks.Answered || len(h.proposed()) > 0 {
				t.Errorf("ending = %+v, proposed %+v", e, h.proposed())
			}
			if said := strings.Join(r.events(id, agent.Notice), "\n"); strings.Contains(said,
				"the list is full") != (name == "full") {
				t.Errorf("notices %q", said)
			}
			if got := strings.Join(s.proposed, ","); got != c.recorded {
				t.Errorf("recorded %q, want %q", got, c.recorded)
			}
			if got := r.git(filepath.Join(r.root, "acme", "api.git"), "branch", "--list", "errand/*"); got != "" {
				t.Errorf("branches: %s", got)
			}
		})
	}
}
