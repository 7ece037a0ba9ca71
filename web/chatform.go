package web

import (
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
)

// maxMessage bounds a form: a message of 1 MiB, which takes up to three times that where it is not ASCII, and pictures of 8 MiB.
const maxMessage = 12 << 20

// chatForm takes what was written on the chat page, and leads to where it is answered.
func (h *Handler) chatForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxMessage)
	err := r.ParseForm() // ParseMultipartForm would hide its error
	if err == nil {
		err = r.ParseMultipartForm(maxMessage) //nolint:gosec // the body is bounded above
	}
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid form", "A message has at most 1 MiB of text and 8 MB of pictures."})
		return
	}
	if h.cfg.Chat.Source == nil {
		h.fail(w, r, problem{http.StatusNotFound, "No chat", "Nothing can be asked here."})
		return
	}
	pictures, err := picturesOf(r.MultipartForm)
	var thread string
	if err == nil {
		_, thread, err = h.cfg.Chat.Source.Post(r.Context(), h.cfg.Desk, r.PostForm, pictures)
	}
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		v := chatView{chatFields: fieldsOf(r.PostForm), Draft: r.PostForm.Get("message"), Mistake: mistake.Sentence}
		if t := r.PostForm.Get("thread"); threadForm.MatchString(t) {
			v.Thread = t
		}
		if len(pictures) > 0 {
			v.Mistake += " Choose the pictures again as well."
		}
		h.showChat(w, r, http.StatusUnprocessableEntity, v)
		return
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, "/chat/"+thread+"#latest", http.StatusSeeOther) //nolint:gosec // the source has named it
}

// picturesOf reads the pictures in a form; nil for a form without any. A field of files that was left empty comes as a file without a name.
func picturesOf(form *multipart.Form) ([]tasks.Picture, error) {
	if form == nil {
		return nil, nil
	}
	var list []tasks.Picture
	for _, header := range form.File["picture"] {
		if header.Filename == "" {
			continue
		}
		f, err := header.Open()
		if err != nil {
			return nil, fmt.Errorf("open picture: %w", err)
		}
		data, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			return nil, fmt.Errorf("read picture: %w", err)
		}
		p, err := tasks.NewPicture(header.Filename, data)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}
