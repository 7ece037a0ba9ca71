package render

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	// maxParts is how many messages a text may take. Of a longer one only the beginning is posted, and all of it as a file.
	maxParts = 4
	// maxBeginning is the length of that beginning, in characters.
	maxBeginning = 3_000
)

// Final is the final message of a task for the user who asked. votes adds the buttons to rate the answer.
func (c Console) Final(t tasks.Task, user string, e tasks.Ending, votes bool) []Part {
	lead := "<@" + user + ">"
	if sentence := Literal(e.Sentence(), MaxSentence); sentence != "" {
		lead += " " + sentence
	}
	return Parts(FinalMarker(t, e), lead, e.Body(), endingFoot(t, e), c.finalButtons(t, e, votes)...)
}

// endingFoot is the note of an ending, and its facts.
func endingFoot(t tasks.Task, e tasks.Ending) string {
	return Lines(Literal(e.Note(), MaxSentence), Dots(Literal(e.Footer(), 200), "run "+t.ID))
}

// Notice is a message about a pull request of a repository that is only watched. The title is a stranger's.
func (c Console) Notice(n tasks.Notice) []Part {
	lead, buttons := Escape(fmt.Sprintf("%s#%d", n.PullRequest.Repo, n.PullRequest.Number)), c.LogButton(n.Task.ID)
	if webLink.MatchString(n.PullRequest.URL) {
		lead = link(n.PullRequest.URL, lead)
		buttons = append([]Button{{Text: "Pull request", Action: ActionPull, URL: n.PullRequest.URL}}, buttons...)
	}
	lead = Lines(lead+" "+Literal(n.PullRequest.Title, 150), Literal(n.Headline, MaxSentence/2))
	mark := FinalMarker(n.Task, n.Ending)
	mark.Pull = PullKey(n.PullRequest)
	return Parts(mark, lead, n.Body, endingFoot(n.Task, n.Ending), buttons...)
}

// PullKey names a pull request in markers and memos.
func PullKey(p forge.PullRequest) string {
	return strings.ToLower(p.Repo) + "#" + strconv.Itoa(p.Number)
}

// Beginning shortens parts that are more than people read to one, which says that where is all of the text; false if they are few enough.
func Beginning(parts []Part, whole, where string) (Part, bool) {
	if len(parts) <= maxParts {
		return Part{}, false
	}
	first, last := parts[0], parts[len(parts)-1]
	first.Body = split(first.Body, maxBeginning)[0] +
		fmt.Sprintf("\n\n_This is the beginning of %d characters. All of them are in %s._", utf8.RuneCountInString(whole), where)
	first.Foot, first.Buttons = last.Foot, last.Buttons
	return first, true
}

// Question is the message that asks user a question. foot says how to answer, or what the answer was.
func Question(t tasks.Task, user string, q tasks.Question, foot string, buttons ...Button) []Part {
	mark := Marker{Task: t.ID, Part: QuestionPart, Question: q.Key}
	var b strings.Builder
	b.WriteString(markdown.Closed(strings.Trim(q.Text, "\r\n"))) // a block of code in the question ends before the options
	for i, option := range q.Options {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "\n%d. %s", i+1, Line(option, MaxSentence))
	}
	return Parts(mark, "<@"+user+"> I have a question before I continue.", b.String(), foot, buttons...)
}

// HowToAnswer says how to answer a question to the bot that is called me, with the deadline in the reader's time zone.
func (c Console) HowToAnswer(t tasks.Task, q tasks.Question, me string) string {
	what, console := "your answer", ""
	if len(q.Options) > 0 {
		what = "a number or your own words"
	}
	if c != "" {
		console = ", or " + link(c.taskURL(t.ID), "in the console")
	}
	without := "After that I continue without an answer."
	if q.Consent != "" {
		without = "After that I continue without it. “" + tasks.Always + "” covers everything that I would ask about: " + Literal(q.Consent, MaxSentence) + "."
	}
	// The words in front of the day's name are part of the format, so that Slack writes "today" in lower case.
	until := fmt.Sprintf("<!date^%d^until {date_short_pretty} at {time}|until %s>", q.Until.Unix(), q.Until.UTC().Format("2006-01-02 15:04 UTC"))
	return fmt.Sprintf("To answer, reply in this thread with <@%s> and %s%s, %s. %s", me, what, console, until, without)
}

// Outcome shows the answer to a question. person renders who gave it.
func Outcome(q tasks.Question, person func(string) string) string {
	return intake.Outcome(q, person, func(s string) string { return Escape(NoPings(s)) })
}

// PullList is a list of the open pull requests of a repository, in mrkdwn.
func PullList(repo string, pulls []forge.PullRequest) string {
	if len(pulls) == 0 {
		return Escape(repo) + " has no open pull requests."
	}
	entries := []string{"The newest open pull requests of " + Escape(repo) + ":"}
	for _, p := range pulls {
		draft := ""
		if p.Draft {
			draft = "draft"
		}
		title := fmt.Sprintf("%s %s", link(p.URL, fmt.Sprintf("#%d", p.Number)), Literal(p.Title, 150))
		entries = append(entries, "• "+Dots(title, Escape(p.Author), draft))
	}
	return strings.Join(entries, "\n")
}
