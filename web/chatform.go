package web

import (
	"errors"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
)

// maxMessage bounds a form around a message of 1 MiB, which takes up to three times that where it is not ASCII.
const maxMessage = 4 << 20

// chatForm takes what was written on the chat page, and leads to where it is answered.
func (h *Handler) chatForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxMessage)
	if err := r.ParseForm(); err != nil {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid form", "A message has at most 1 MiB of text."})
		return
	}
	if h.cfg.Chat.Source == nil {
		h.fail(w, r, problem{http.StatusNotFound, "No chat", "Nothing can be asked here."})
		return
	}
	_, thread, err := h.cfg.Chat.Source.Post(r.Context(), h.cfg.Desk, r.PostForm)
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		f := r.PostForm.Get
		v := chatView{Repo: f("repo"), Dir: f("projectPath"), Agent: f("agent"), Model: f("model"), Effort: f("effort"), Draft: f("message"), Mistake: mistake.Sentence}
		if threadForm.MatchString(f("thread")) {
			v.Thread = f("thread")
		}
		h.showChat(w, r, http.StatusUnprocessableEntity, v)
		return
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, "/chat/"+thread+"#latest", http.StatusSeeOther) //nolint:gosec // it has a form that leads to our own pages
}
