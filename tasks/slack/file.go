package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// maxParts is how many messages something may take. Of what takes more only the beginning is said, and all of it is in a file.
const maxParts = 4

// maxBeginning is how much of it is said, in characters.
const maxBeginning = 3_000

// compose divides a final message into parts. What takes more of them than people read is put into a file, and only its beginning is said.
// Where Slack takes no file, all of it is said all the same.
func (s *Source) compose(ctx context.Context, o origin, f found, t tasks.Task, e tasks.Ending) ([]part, error) {
	list := s.parts(t, o, e)
	if len(list) <= maxParts {
		return list, nil
	}
	first, last, body := list[0], list[len(list)-1], strings.TrimSpace(e.Body())
	err := s.share(ctx, o, f, first.mark, "The whole answer:", body)
	if refused(err) {
		s.log.Warn("say all of a long answer", "run", t.ID, "err", err)
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	first.body = split(first.body, maxBeginning)[0] +
		fmt.Sprintf("\n\n_This is the beginning of %d characters. All of them are in the file above._", utf8.RuneCountInString(body))
	first.foot, first.buttons = last.foot, last.buttons
	return []part{first}, nil
}

// share adds a file to the thread. Files have no metadata: that of a final message is known again by its name, if an earlier attempt added it.
func (s *Source) share(ctx context.Context, o origin, f found, m marker, comment, text string) error {
	name := m.file()
	if m.of(finalPart) && f.files[name] {
		return nil
	}
	return s.upload(ctx, o, name, comment, []byte(text))
}

// refused reports whether Slack will not take a file later either.
func refused(err error) bool {
	_, limited := errors.AsType[*slack.RateLimitedError](err)
	return code(err) != "" && code(err) != "internal_error" && !limited && !gone(err)
}

// asFile says a part that Slack takes in no other form.
func (s *Source) asFile(ctx context.Context, o origin, f found, p part) error {
	text := p.body
	if text == "" {
		text = lines(p.lead, p.foot)
	}
	return s.share(ctx, o, f, p.mark, lines(p.lead, p.foot), text)
}

// file is the name of the file that a part is put into.
func (m marker) file() string {
	name := strings.ReplaceAll(m.part, "/", "-") + "-" + m.task
	if m.ending != "" {
		name += "-" + m.ending
	}
	return name + ".md"
}
