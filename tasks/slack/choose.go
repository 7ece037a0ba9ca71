package slack

import (
	"cmp"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// settle decides where a request is worked on, and how: as the message says, else as its thread does, else in the repository of its
// channel. Where that leaves a choice the candidates come back.
func (s *Source) settle(t *tasks.Task, r request, thread tasks.Thread) (candidates []string, err error) {
	t.Ref, t.Options = r.ref, merged(thread.Options, r.options)
	channel := s.channel(t.Channel)
	if full, err := s.complete(r.perhaps); r.repo == "" && err == nil {
		r.repo = full
	}
	switch only := s.cfg.Repositories; {
	case r.repo == none:
	case r.repo != "":
		t.Repo, err = s.complete(r.repo)
	case thread.Latest != "", thread.Repo != "":
		t.Repo = thread.Repo
	case channel != "":
		t.Repo = channel
	case len(r.several) > 0:
		return r.several, nil
	case len(only) == 1:
		t.Repo = only[0]
	case len(only) > 1:
		return only, nil
	}
	if err == nil && t.Ref != "" && t.Repo == "" {
		err = wrong("A branch needs a repository: write [repo=owner/name branch=%s].", t.Ref)
	}
	if t.Ref == "" && strings.EqualFold(t.Repo, thread.Repo) {
		t.Ref = thread.Ref
		if thread.Profile == agent.Untrusted { // what is at that ref is no more to be trusted than it was
			t.Profile = agent.Untrusted
		}
	}
	return nil, err
}

// channel is the repository that a channel is about, empty if it is about none.
func (s *Source) channel(id string) string {
	if s.cfg.Channels == nil {
		return ""
	}
	repo, ok := s.cfg.Channels(id)
	if !ok {
		return ""
	}
	return repo
}

// merged are the options of a thread, but for those that a message sets itself.
func merged(thread, said tasks.Options) tasks.Options {
	return tasks.Options{
		Model: cmp.Or(said.Model, thread.Model), Effort: cmp.Or(said.Effort, thread.Effort), Agent: cmp.Or(said.Agent, thread.Agent),
		MaxUSD: cmp.Or(said.MaxUSD, thread.MaxUSD), Limit: cmp.Or(said.Limit, thread.Limit), Plan: said.Plan,
	}
}

// complete gives a repository its full name. Of those that errand works on, the name alone will do, if it is the only one called so.
func (s *Source) complete(name string) (string, error) {
	var found []string
	for _, full := range s.cfg.Repositories {
		_, short, _ := strings.Cut(full, "/")
		if strings.EqualFold(full, name) || strings.EqualFold(short, name) {
			found = append(found, full)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case fullForm.MatchString(name):
		return name, nil // whether errand works on it the desk knows
	case len(found) > 1:
		return "", wrong("There are several repositories called %q: %s. Write which one.", name, strings.Join(found, ", "))
	}
	return "", wrong("I know no repository called %q: write it as owner/name.", name)
}

// maxCandidates is how many repositories are named where people have to choose.
const maxCandidates = 10

// undecidedSentence asks for the repository where there is nothing to choose it with.
func undecidedSentence(candidates []string) string {
	list := strings.Join(candidates[:min(len(candidates), maxCandidates)], ", ")
	if n := len(candidates) - maxCandidates; n > 0 {
		list += ", …"
	}
	return which + " Ask again and begin with [repo=owner/name]: " + list + ". With [repo=none] I work without one."
}
