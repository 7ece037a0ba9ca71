package web

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
)

// maxAnswer bounds the request around an answer, which is far smaller.
const maxAnswer = 64 << 10

// answered gives a person's answer to the desk; false when that was answered with an error.
func (h *Handler) answered(w http.ResponseWriter, r *http.Request, question, text string) (id string, a tasks.Answer, ok bool) {
	id, ok = h.id(w, r)
	if !ok {
		return id, a, false
	}
	a, err := h.cfg.Desk.Answer(r.Context(), id, question, tasks.Actor(r.Context()), text)
	if mistake, is := errors.AsType[*tasks.InputError](err); is {
		h.fail(w, r, problem{http.StatusUnprocessableEntity, "Invalid answer", mistake.Sentence})
		return id, a, false
	}
	if errors.Is(err, tasks.ErrNotFound) {
		h.fail(w, r, problem{http.StatusNotFound, "No such question", "The task does not wait for this answer: it never asked, goes on without, or has ended."})
		return id, a, false
	}
	if err != nil {
		h.refuse(w, r, err)
	}
	return id, a, err == nil
}

// answer is for programs: {"question": its key, or empty for the only one that is open, "answer": the words}. What comes back is the answer
// that stands, which is the first one.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request) {
	var body struct{ Question, Answer string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswer)).Decode(&body); err != nil {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid body", `An answer looks like {"answer": "the second one"}.`})
		return
	}
	if _, a, ok := h.answered(w, r, body.Question, body.Answer); ok {
		h.json(w, http.StatusOK, a)
	}
}

// answerForm is what the buttons and the field below a question do.
func (h *Handler) answerForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswer)
	if id, _, ok := h.answered(w, r, r.PostFormValue("question"), r.PostFormValue("answer")); ok {
		back(w, r, id)
	}
}
