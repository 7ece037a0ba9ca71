package githubfake

import (
	"bytes"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/url"
	"slices"
	"strings"
)

func (s *Server) gitRoutes() {
	for _, pattern := range []string{
		"GET /{o}/{r}/info/refs", "POST /{o}/{r}/git-upload-pack", "POST /{o}/{r}/git-receive-pack",
	} {
		handle(&s.web, pattern, s.serveGit)
	}
}

// serveGit admits a request of git's smart protocol and lets http-backend
// answer it. It takes Server.mu by itself.
func (s *Server) serveGit(w http.ResponseWriter, r *request) {
	push := strings.HasSuffix(r.URL.Path, "/git-receive-pack") || r.URL.Query().Get("service") == "git-receive-pack"
	if !s.admitGit(w, r, push) {
		return
	}
	if !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
		s.backendCGI(w, r)
		return
	}
	// One push at a time: what differs between the two looks at the branches
	// is what this push moved.
	r.repo.pushing.Lock()
	defer r.repo.pushing.Unlock()
	before, err := s.branches(r.repo.dir)
	answer := &recorder{header: http.Header{}}
	if err == nil {
		s.backendCGI(answer, r)
		refusal := &recorder{header: http.Header{}}
		refused := false
		if refused, err = s.refuseWorkflows(refusal, r, before); refused {
			answer = refusal
		}
	}
	if err == nil {
		err = s.afterPush(r, before)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer.copyTo(w)
}

// admitGit answers itself and returns false when the caller may not.
func (s *Server) admitGit(w http.ResponseWriter, r *request, push bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.ToLower(r.PathValue("o") + "/" + strings.TrimSuffix(r.PathValue("r"), ".git"))
	r.repo = s.repos[name]
	visible := r.repo != nil && r.who.sees(r.repo)
	anonymous := r.who.kind == nobody
	level := "read"
	if push {
		level = "write"
	}
	switch {
	case r.who.kind == refusedCaller || r.who.kind == appCaller, anonymous && (push || !visible):
		// Also for what does not exist: git must be asked for credentials first.
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Invalid username or token.", http.StatusUnauthorized)
	case !visible:
		http.Error(w, "Repository not found.", http.StatusNotFound)
	case !r.who.may("contents", level) || push && r.repo.foreign:
		http.Error(w, "Write access to repository not granted.", http.StatusForbidden)
	default:
		return true
	}
	return false
}

// backendCGI runs git http-backend. The body is spooled: CGI has no chunked
// bodies, which git sends when a push is larger than http.postBuffer.
func (s *Server) backendCGI(w http.ResponseWriter, r *request) {
	hr := r.Clone(r.Context())
	path := "/" + r.repo.FullName() + ".git/" + strings.SplitN(strings.TrimPrefix(r.URL.Path, "/"), "/", 3)[2]
	hr.URL = &url.URL{Path: path, RawQuery: r.URL.RawQuery}
	hr.Body, hr.ContentLength, hr.TransferEncoding = io.NopCloser(bytes.NewReader(r.body)), int64(len(r.body)), nil
	hr.Header.Del("Authorization") // git's environment is readable in /proc
	h := cgi.Handler{
		Path: s.backend, Dir: s.cfg.Dir, Stderr: io.Discard, Logger: log.New(io.Discard, "", 0),
		Env: append(
			s.gitEnv(), "GIT_PROJECT_ROOT="+s.cfg.Dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+r.who.login,
			"GIT_PROTOCOL="+r.Header.Get("Git-Protocol"),
		),
	}
	h.ServeHTTP(w, hr)
}

// afterPush compares the branches and lets the pull requests follow. A push
// may move several; the webhooks go out by branch name.
func (s *Server) afterPush(r *request, before map[string]string) error {
	after, err := s.branches(r.repo.dir)
	if err != nil {
		return err
	}
	names := maps.Clone(before)
	maps.Copy(names, after)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, branch := range slices.Sorted(maps.Keys(names)) {
		if before[branch] == after[branch] {
			continue
		}
		events, err := s.follow(r.repo, branch, before[branch], after[branch], r.who.login)
		if err != nil {
			return err
		}
		s.echo(events...)
	}
	s.changed()
	return nil
}
