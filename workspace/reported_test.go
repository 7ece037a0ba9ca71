package workspace

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What broke other bots, by their public reports.

// A host redirects from the former name of a repository, for reading and for pushing, and wants the credential at the
// new one (Netflix/hubcommander#73, PyGithub#311).
func TestRenamedRepository(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	testGit(t, o.bare, "config", "http.receivepack", "true")
	s := o.serve(rules{password: secret})
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if rest, old := strings.CutPrefix(r.URL.RequestURI(), "/acme/old.git/"); old {
			http.Redirect(rw, r, "/acme/api.git/"+rest, http.StatusMovedPermanently)
			return
		}
		s.Config.Handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	w := open(t, Config{
		Dir: t.TempDir(), URL: func(repo string) string { return front.URL + "/" + repo + ".git" },
		Credential: func(context.Context, string) (string, string, error) { return "x-access-token", secret, nil },
	})
	want := api
	want.Repo = "acme/old"
	c := checkout(t, w, want)
	write(t, c.Dir+"/new.txt", "x\n")
	published(t, w, c, publication())
	if files, _ := o.branch(ownBranch); files["new.txt"] != "x\n" {
		t.Errorf("pushed %v", files)
	}
}

// Branches may have nearly every character (anthropics/claude-code-action#616 and #751, claude-code#47439).
func TestOddBranches(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	for _, name := range []string{"feature/テスト", "#8982-bugfix", "feature/#12+50%&a=b", "it's(1)", "$HOME`id`;x"} {
		head := o.commit(name, map[string]string{"odd.txt": name + "\n"})
		want := Want{Thread: "on " + head, Repo: "acme/api", Ref: name, Base: name}
		c := checkout(t, w, want)
		if c.Head != head || c.BaseSHA != head {
			t.Errorf("%s: %+v", name, c)
		}
		write(t, c.Dir+"/new.txt", name+"\n")
		p := publication()
		p.Branch = "errand/slack-" + head[:10]
		published(t, w, c, p)
		if files, _ := o.branch(p.Branch); files["new.txt"] != name+"\n" || files["odd.txt"] != name+"\n" {
			t.Errorf("%s: pushed %v", name, files)
		}
	}
}
