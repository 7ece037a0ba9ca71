package attempt

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/place"
)

// spec returns the specification of a run.
func (p *Processor) spec(t tasks.Task, s setting) agent.Spec {
	where, c, before := s.place, s.conversation, s.before
	prompt, words := s.Prompt, before.words(t, where)
	prompt.Text = cmp.Or(prompt.Text, t.Prompt)
	if before.goesOn() {
		// The conversation has the prompt already. If it came twice, the agent would do the work twice.
		prompt, words = agent.Message{Text: words, Composed: true}, ""
	}
	if t.Options.Plan {
		prompt.Mode = agent.Plan
	}
	prompt.ID = uuid.NewString() // a session that contains this ID has the prompt
	var also []agent.Also
	trusted := true
	for i, one := range where.Clones() {
		of := ""
		trusted = trusted && one.Trusted // the agent sees the files of all of them
		if i > 0 {
			of, also = " of "+one.Clone.Repo, append(also, agent.Also{Repo: one.Clone.Repo, Dir: one.Dir})
		}
		if !one.Fresh || c.session == nil {
			continue
		}
		if one.Clone.Published != "" {
			where.About += " The clone" + of +
				" is new and starts from your published work. Your unpublished changes are gone."
		} else {
			where.About += " The clone" + of +
				" is new: the changes that you made earlier in this conversation are gone."
		}
	}
	others := slices.DeleteFunc(where.OtherRepositories(), func(a agent.Also) bool { return t.Has(a.Repo) })
	also = append(also, others...)
	return agent.Spec{
		ID: t.ID, Claimed: true, Dir: where.Dir, Folder: where.Folder, Files: where.Files, Also: also,
		Reads: where.Reads, Prompt: prompt, System: format.Paragraphs(s.System, words, where.About),
		Profile: t.Profile, TrustedConfig: trusted,
		Instructions: where.Told(), Environment: where.Given(), Rules: p.Policy.Rules,
		Model: where.Settled.Value("model"), Effort: where.Settled.Value("effort"), MaxUSD: t.Options.MaxUSD,
		Schema: s.Schema, Resume: c.session, History: c.said, Limit: t.Options.Limit,
		IdleLimit: p.IdleLimit, Thread: t.Thread, Repo: t.Repo, Person: p.Policy.People.Asker(t),
		Header: p.header(t, where),
	}
}

// chosen lists the settings that count for a run, with whose they are.
func chosen(where place.Place) (list []string) {
	for _, one := range where.Settled.Settings {
		list = append(list, one.Name+" "+one.Value+" of "+one.Of)
	}
	return list
}

// header returns the first lines of the log.
func (p *Processor) header(t tasks.Task, where place.Place) []string {
	lines := []string{
		"thread " + t.Thread, "source " + t.Source + " " + t.Kind + " by " + t.Actor,
		"profile " + string(t.Profile), "where " + cmp.Or(strings.Join(t.Repositories(), ", "), t.Dir, "scratch"),
		"task " + t.Title(), "worker " + p.Worker,
	}
	lines = append(lines, chosen(where)...)
	for _, one := range where.Clones() {
		for _, lack := range one.Clone.Lacks {
			lines = append(lines, "lacks "+one.Clone.Repo+": "+lack.String())
		}
	}
	return lines
}
