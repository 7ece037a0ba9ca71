package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// eventType is the kind of metadata by which we know our messages again.
const eventType = "errand_task"

// The parts of a task's report. The status is one message, which is edited. All else may take several: the final message has the parts
// "final/1", "final/2" and so on, one of which may have had to be said in plain text, as "final/1.1", "final/1.2". What the agent
// says and asks on its way has such parts as well, the same for each time.
const (
	statusPart   = "status"
	finalPart    = "final"
	updatePart   = "update"
	questionPart = "question"
	listPart     = "list"
)

// maxCovers keeps the metadata of a final message within what Slack takes. A message is found again by its task and ending.
const maxCovers = 50

// marker says which part of which task's report a message is. People do not see it, and nobody but the author of a message can
// write it.
type marker struct {
	task, part string
	ending     string // which of the task's endings a final message tells: one that was tried again has another
	covers     string // further tasks that a final message is for, by ID, as many as there is room for
	question   string // which of the task's questions a message asks, by key
	pull       string // of which pull request a notice tells
}

func statusMarker(t tasks.Task) marker { return marker{task: t.ID, part: statusPart} }

func finalMarker(t tasks.Task, e tasks.Ending) marker {
	covers := strings.Join(e.Covers[:min(len(e.Covers), maxCovers)], " ")
	return marker{task: t.ID, part: finalPart, ending: strconv.FormatInt(e.At.UnixMicro(), 10), covers: covers}
}

func (m marker) metadata() slack.SlackMetadata {
	payload := map[string]any{"task": m.task, "part": m.part}
	if m.ending != "" {
		payload["ending"] = m.ending
	}
	if m.covers != "" {
		payload["covers"] = m.covers
	}
	if m.question != "" {
		payload["question"] = m.question
	}
	if m.pull != "" {
		payload["pull"] = m.pull
	}
	return slack.SlackMetadata{EventType: eventType, EventPayload: payload}
}

// markerOf is the marker of a message, the zero one for what is not ours.
func markerOf(m slack.Message) marker {
	if m.Metadata.EventType != eventType {
		return marker{}
	}
	field := func(name string) string {
		v, _ := m.Metadata.EventPayload[name].(string)
		return v
	}
	return marker{
		task: field("task"), part: field("part"), ending: field("ending"), covers: field("covers"), question: field("question"), pull: field("pull"),
	}
}

// of reports whether it marks a message of that part.
func (m marker) of(part string) bool { return m.part == part || strings.HasPrefix(m.part, part+"/") }

// found is what a thread holds of a task's report already.
type found struct {
	status map[string][]string // by task, of the thread's tasks all: ts of the status messages, the one in use at the end
	parts  map[marker]bool     // of its final messages, those of all its endings, also where that was another task's
	files  map[string]bool     // names of those that we have put there
}

// shown is the status message of a task, empty if it has none.
func (f found) shown(task string) string {
	list := f.status[task]
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// final is the marker of a final message for an ending after that time, and when that was; false where there is none.
func (f found) final(after time.Time) (latest marker, at time.Time, ok bool) {
	for m := range f.parts {
		micros, err := strconv.ParseInt(m.ending, 10, 64)
		if ended := time.UnixMicro(micros); err == nil && ended.After(after) && ended.After(at) {
			latest, at, ok = m, ended.UTC(), true
		}
	}
	return latest, at, ok
}

// Final finds a task's final message in its thread. Where we may not look there is none that we know of.
func (s *Source) Final(ctx context.Context, t tasks.Task, after time.Time) (*tasks.Ending, error) {
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	f, err := s.find(ctx, o, t)
	if gone(err) || blind(err) {
		return nil, nil
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		return nil, &tasks.ErrLater{At: s.cfg.Now().Add(limited.RetryAfter), Why: "Slack takes no more requests for now"}
	}
	m, at, ok := f.final(after)
	if err != nil || !ok {
		return nil, err
	}
	return &tasks.Ending{Kind: tasks.Answered, At: at, Covers: strings.Fields(m.covers)}, nil
}

// begun reports whether a part is being said in plain text.
func (f found) begun(part marker) bool {
	for m := range f.parts {
		if m.ending == part.ending && strings.HasPrefix(m.part, part.part+".") {
			return true
		}
	}
	return false
}

// find looks through what was posted after the request. Another bot's messages do not count, even with our marker: where two errands
// are in a channel, one mention may be a task of both.
func (s *Source) find(ctx context.Context, o origin, t tasks.Task) (found, error) {
	f := found{status: map[string][]string{}, parts: map[marker]bool{}, files: map[string]bool{}}
	me, err := s.me.get(ctx)
	if err != nil {
		return f, fmt.Errorf("find report: %w", err)
	}
	for msg, err := range s.thread(ctx, o, o.TS, "") {
		if err != nil {
			return f, fmt.Errorf("find report: %w", err)
		}
		for _, file := range msg.Files {
			f.files[file.Name] = f.files[file.Name] || msg.User == me.user || msg.BotID == me.bot
		}
		switch m := markerOf(msg); {
		case msg.BotID != me.bot:
		case m.of(statusPart):
			f.status[m.task] = append(f.status[m.task], msg.Timestamp)
		case m.of(finalPart) && (m.task == t.ID || slices.Contains(strings.Fields(m.covers), t.ID)):
			f.parts[m] = true
		}
	}
	return f, nil
}
