package chat

import (
	"context"
	"net/url"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// Post submits a form, whose fields have the names of the API's, and its pictures. thread is what the next form names to continue. An
// *InputError says what to change.
func (s *Source) Post(ctx context.Context, d *tasks.Desk, form url.Values, pictures []tasks.Picture) (r tasks.Receipt, thread string, err error) {
	t, p := s.task(request{
		Message: strings.ReplaceAll(form.Get("message"), "\r\n", "\n"), // as forms are sent
		Repo:    form.Get("repo"), Branch: form.Get("branch"), ProjectPath: form.Get("projectPath"), Agent: form.Get("agent"), Thread: form.Get("thread"),
		Model: form.Get("model"), Effort: form.Get("effort"), Budget: amount(form.Get("budget")), Timeout: form.Get("timeout"), Plan: form.Get("plan") != "",
	}, tasks.Actor(ctx))
	if p != nil {
		return r, "", &tasks.InputError{Sentence: p.Detail}
	}
	t.Pictures = pictures
	r, err = s.submit(ctx, d, t)
	return r, strings.TrimPrefix(t.Thread, s.Name()+"/"), err
}
