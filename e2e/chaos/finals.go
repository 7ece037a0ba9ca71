package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/e2e/chaos/script"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// final is one final message that a fake received.
type final struct {
	place  place
	what   string   // for people
	covers []string // IDs of the tasks that it ends
	text   string
	why    bool // it gives the reason for the missing answer, possibly with a partial one
	answer bool // posted as an answer; its text is in text or, on GitHub, in the comment
}

// answers reports whether it is an answer and not the reason for a missing one.
func (f final) answers() bool {
	if f.place == inGitHub {
		return f.answer
	}
	_, ok := script.Answers(f.text)
	return ok && !f.why
}

// finalsOf collects all final messages for these events.
func finalsOf(w *world, events []event) []final {
	var all []final
	threads, heads := map[[2]string]bool{}, map[string]bool{}
	for _, e := range events {
		switch e.place {
		case inSlack:
			if key := [2]string{e.channel, e.root}; !threads[key] {
				threads[key] = true
				all = append(all, slackFinals(w.slack.Messages(e.channel, e.root))...)
			}
		case inGitHub:
			if !heads[e.head] {
				heads[e.head] = true
				all = append(all, searched(e, githubFinals(w.github.Statuses(repository, e.head)))...)
			}
		case inChat:
			for _, text := range e.endings {
				all = append(all, final{place: inChat, what: "chat " + e.id, covers: []string{e.id}, text: text})
			}
		}
	}
	return all
}

// covered is the list of further tasks in a final message's hidden marker.
type covered []string

// UnmarshalJSON accepts a list, or one text with the IDs.
func (c *covered) UnmarshalJSON(data []byte) error {
	var list []string
	if err := json.Unmarshal(data, &list); err == nil {
		*c = list
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*c = strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	return nil
}

// sentence matches the beginning of a final message that is not an answer: the line that names the author.
var sentence = regexp.MustCompile(`^<@\w+> \S`)

// slackFinals finds the final messages of a thread by their metadata. The parts of one ending are one message; a part
// that was posted twice makes it two.
func slackFinals(thread []slackfake.Message) []final {
	type key struct{ task, ending string }
	type post struct {
		final
		parts map[string]int
	}
	posts := map[key]*post{}
	var order []key
	for _, m := range thread {
		var mark struct {
			Type    string `json:"event_type"`
			Payload struct {
				Task   string  `json:"task"`
				Part   string  `json:"part"`
				Ending string  `json:"ending"`
				Covers covered `json:"covers"`
			} `json:"event_payload"`
		}
		if m.BotID == "" || json.Unmarshal(m.Metadata, &mark) != nil || mark.Type != "errand_task" ||
			!strings.HasPrefix(mark.Payload.Part, "final/") {
			continue
		}
		p := mark.Payload
		k := key{p.Task, p.Ending}
		if posts[k] == nil {
			posts[k] = &post{final: final{
				place: inSlack, what: "message " + m.TS + " of " + p.Task, covers: []string{p.Task},
			}, parts: map[string]int{}}
			order = append(order, k)
		}
		posts[k].parts[p.Part]++
		posts[k].text += m.Text + "\n"
		posts[k].why = posts[k].why || sentence.MatchString(m.Text)
		for _, id := range p.Covers {
			if !slices.Contains(posts[k].covers, id) {
				posts[k].covers = append(posts[k].covers, id)
			}
		}
	}
	var all []final
	for _, k := range order {
		times := 0
		for _, n := range posts[k].parts {
			times = max(times, n)
		}
		all = append(all, slices.Repeat([]final{posts[k].final}, times)...)
	}
	return all
}

// githubFinals finds the terminal statuses of a commit. The end of a status's URL identifies the task.
func githubFinals(statuses []githubfake.Status) []final {
	var all []final
	for _, s := range statuses {
		_, id, _ := strings.Cut(s.TargetURL, "#")
		if s.State == "pending" {
			continue
		}
		all = append(all, final{
			place: inGitHub, what: fmt.Sprintf("status %d of %s", s.ID, id), covers: []string{id},
			text: s.Description, answer: strings.HasPrefix(s.Description, "Reviewed"),
		})
	}
	return all
}

// isLook reports whether a task is that of errand's look for an event that it knows no task of. It looks from time to
// time, and finds events that a lost master has taken with it and those whose webhooks come late. The webhook then
// becomes no other task.
func (e event) isLook(task string) bool {
	return e.place == inGitHub && len(e.head) > 7 &&
		strings.HasSuffix(task, fmt.Sprintf("-github-look-%d-%s", e.pull, e.head[:7]))
}

// searched counts the final messages of tasks that were found by looking as those of the event with the same head.
func searched(e event, finals []final) []final {
	for i, f := range finals {
		if e.id != "" && e.isLook(f.covers[0]) {
			finals[i].covers = []string{e.id}
		}
	}
	return finals
}

// comments returns errand's comments on a pull request, without continuation parts.
func comments(all []githubfake.Comment) []string {
	var own []string
	for _, c := range all {
		if c.User == bot && strings.HasPrefix(c.Body, "<!-- errand:review -->") {
			own = append(own, c.Body)
		}
	}
	return own
}
