package slackfake

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// maxFile is the bytes that one file may have here. Slack takes 1 GB.
const maxFile = 64 << 20

// File is a file in a message: uploaded by the bot, or sent by a user, who gives its Name and Data, or its URL.
type File struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Title string `json:"title"`              // the name, if the bot gave none
	Type  string `json:"mimetype,omitempty"` // what Slack takes it for
	Size  int    `json:"size"`               // in bytes
	URL   string `json:"url_private"`        // where the bot may fetch it; ours for what has Data
	Data  []byte `json:"-"`

	Mode   string `json:"mode,omitempty"` // of a file that an event only names; see files.info
	Access string `json:"file_access,omitempty"`
}

// onlyNamed are files as events of channels shared with another organisation have them: without what files.info says.
func onlyNamed(files []File) (list []File) {
	for _, f := range files {
		list = append(list, File{ID: f.ID, Mode: "file_access", Access: "check_file_info"})
	}
	return list
}

// filesInfo describes a file of a message that the bot can see.
func (s *Server) filesInfo(f url.Values) (answer, error) {
	for _, m := range s.messages {
		for _, file := range m.Files {
			if _, err := s.open(m.Channel); err == nil && file.ID == f.Get("file") {
				return answer{"file": file, "comments": []any{}}, nil
			}
		}
	}
	return refuse("file_not_found")
}

// share stores the files of a user's message. The caller holds mu.
func (s *Server) share(files []File) []File {
	files = slices.Clone(files)
	for i := range files {
		f := &files[i]
		if s.shared++; f.ID == "" {
			f.ID = fmt.Sprintf("F1%09d", s.shared)
		}
		f.Title = cmp.Or(f.Title, f.Name)
		if f.URL == "" {
			f.URL, f.Size = s.url+"/files-pri/"+f.ID+"/"+url.PathEscape(f.Name), cmp.Or(f.Size, len(f.Data))
		}
	}
	return files
}

// serveFile serves a file to requests with the bot's token. Others are sent to the login page, as Slack does; so is
// an app without the scope
// files:read.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+s.cfg.BotToken {
		http.Redirect(w, r, "/?redir=files", http.StatusFound)
		return
	}
	for _, m := range s.messages {
		for _, f := range m.Files {
			if f.ID == r.PathValue("file") {
				w.Header().Set("Content-Type", cmp.Or(f.Type, "application/octet-stream"))
				_, _ = w.Write(f.Data)
				return
			}
		}
	}
	http.NotFound(w, r)
}

// upload is a file on its way. All of it is guarded by Server.mu.
type upload struct {
	File
	there bool // its bytes have arrived
}

// filesGetUploadURLExternal is the first of three steps; the second is a POST to the address it gives, the third
// completes it.
func (s *Server) filesGetUploadURLExternal(f url.Values) (answer, error) {
	size, err := strconv.Atoi(f.Get("length"))
	if f.Get("filename") == "" || err != nil || size <= 0 {
		return refuse("invalid_arguments")
	}
	u := &upload{File: File{ID: fmt.Sprintf("F%010d", len(s.uploads)+1), Name: f.Get("filename"), Size: size}}
	s.uploads = append(s.uploads, u)
	return answer{"upload_url": s.url + "/upload/v1/" + u.ID, "file_id": u.ID}, nil
}

// serveUpload takes the bytes of a file, which clients send bare or as a form. The address is the secret: it takes
// no token, and it is
// not recorded among the calls. That fewer or more bytes than announced are refused is ours: they are always a mistake.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	data, err := uploaded(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.upload(r.PathValue("file"))
	switch {
	case u == nil:
		http.Error(w, "no such upload", http.StatusNotFound)
	case len(data) != u.Size:
		http.Error(w, fmt.Sprintf("%d bytes, announced were %d", len(data), u.Size), http.StatusBadRequest)
	default:
		u.Data, u.there = data, true
		fmt.Fprintf(w, "OK - %d", u.Size)
	}
}

// uploaded reads the bytes of a request's one file.
func uploaded(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxFile)
	form, err := r.MultipartReader()
	if errors.Is(err, http.ErrNotMultipart) {
		return io.ReadAll(r.Body)
	}
	if err != nil {
		return nil, err
	}
	part, err := form.NextPart()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(part)
}

// filesCompleteUploadExternal shares what was uploaded, once, in one message. Slack does so a moment after its
// answer; here it is there
// at once. Without a channel the files stay private.
func (s *Server) filesCompleteUploadExternal(f url.Values) (answer, error) {
	var wanted []File
	if json.Unmarshal([]byte(f.Get("files")), &wanted) != nil || len(wanted) == 0 {
		return refuse("invalid_arguments")
	}
	m := Message{User: s.cfg.BotUserID, BotID: s.cfg.BotID, Text: f.Get("initial_comment")}
	done := []answer{}
	for _, file := range wanted {
		u := s.upload(file.ID)
		if u == nil || !u.there {
			return refuse("file_not_found")
		}
		if u.Title = file.Title; u.Title == "" {
			u.Title = u.Name
		}
		m.Files = append(m.Files, u.File)
		done = append(done, answer{"id": u.ID, "title": u.Title})
	}
	if f.Has("channel_id") {
		ch, err := s.writable(f.Get("channel_id"))
		if err != nil {
			return nil, err
		}
		m.Channel = ch.ID
		if err := s.thread(&m, f.Get("thread_ts")); err != nil {
			return nil, err
		}
		s.add(m)
	}
	for _, file := range m.Files {
		s.upload(file.ID).there = false // completed is completed
	}
	return answer{"files": done}, nil
}

// upload is nil for an ID that was not given out. The caller holds mu.
func (s *Server) upload(id string) *upload {
	i := slices.IndexFunc(s.uploads, func(u *upload) bool { return u.ID == id })
	if i < 0 {
		return nil
	}
	return s.uploads[i]
}
