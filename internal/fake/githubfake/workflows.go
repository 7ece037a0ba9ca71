package githubfake

import (
	"fmt"
	"net/http"
	"strings"
)

// mayWorkflows reports whether the caller may push workflows: a token with the
// scope "workflow", an App with the permission "workflows".
func (s *Server) mayWorkflows(c caller) bool {
	return s.cfg.Workflows || c.kind == installationToken && c.may("workflows", "write")
}

// refuseWorkflows takes back the move of a branch that changes a workflow, and
// answers as GitHub does. It returns false when there was none.
func (s *Server) refuseWorkflows(w http.ResponseWriter, r *request, before map[string]string) (bool, error) {
	if s.mayWorkflows(r.who) {
		return false, nil
	}
	after, err := s.branches(r.repo.dir)
	if err != nil {
		return false, err
	}
	for branch, sha := range after {
		from := before[branch]
		if from == sha {
			continue
		}
		if from == "" {
			from = "HEAD" // a new branch brings what the default one lacks
		}
		out, err := s.git(r.repo.dir, "", "diff", "--name-only", from+"..."+sha, "--", ".github/workflows")
		if err != nil {
			return false, err
		}
		file, _, _ := strings.Cut(out, "\n")
		if file == "" {
			continue
		}
		if before[branch] == "" {
			_, err = s.git(r.repo.dir, "", "update-ref", "-d", "refs/heads/"+branch)
		} else {
			_, err = s.git(r.repo.dir, "", "update-ref", "refs/heads/"+branch, before[branch])
		}
		if err != nil {
			return false, err
		}
		who, lacks := "a Personal Access Token", "`workflow` scope"
		if r.who.kind == installationToken {
			who, lacks = "a GitHub App", "`workflows` permission"
		}
		refusePush(w, "refs/heads/"+branch,
			fmt.Sprintf("refusing to allow %s to create or update workflow `%s` without %s", who, file, lacks))
		return true, nil
	}
	return false, nil
}

// refusePush is git's report of a ref that was not taken (gitprotocol-pack(5)),
// in the first band, which every client of smart HTTP asks for.
func refusePush(w http.ResponseWriter, ref, reason string) {
	w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	report := packet("unpack ok\n") + packet("ng "+ref+" "+reason+"\n") + "0000"
	_, _ = w.Write([]byte(packet("\x01"+report) + "0000"))
}

func packet(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
