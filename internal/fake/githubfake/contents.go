package githubfake

import (
	"encoding/base64"
	"strings"
)

// maxContent is up to where GitHub sends a file's content along, in bytes.
const maxContent = 1 << 20

func (s *Server) contentRoutes() {
	s.api("GET /repos/{o}/{r}/contents/{path}", "contents:read", func(r *request) reply {
		ref := r.URL.Query().Get("ref")
		if ref == "" {
			ref = "main"
		}
		commit, path := s.resolve(r.repo.dir, ref), r.PathValue("path")
		if commit == "" {
			return fail(404, "No commit found for the ref "+ref)
		}
		kind, err := s.git(r.repo.dir, "", "cat-file", "-t", commit+":"+path)
		if err != nil {
			return fail(404, "Not Found")
		}
		sha, err := s.git(r.repo.dir, "", "rev-parse", commit+":"+path)
		if err != nil {
			return fail(500, err.Error())
		}
		o := object{"name": path[strings.LastIndexByte(path, '/')+1:], "path": path, "sha": strings.TrimSpace(sha)}
		if strings.TrimSpace(kind) == "tree" {
			o["type"] = "dir"
			return ok([]object{o}) // a client can tell by the form alone
		}
		text, err := s.git(r.repo.dir, "", "cat-file", "blob", commit+":"+path)
		if err != nil {
			return fail(500, err.Error())
		}
		o["type"], o["size"], o["encoding"] = "file", len(text), "base64"
		o["content"] = base64.StdEncoding.EncodeToString([]byte(text))
		if len(text) > maxContent {
			o["encoding"], o["content"] = "none", ""
		}
		return ok(o)
	})
}
