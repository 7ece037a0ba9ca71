package worker

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/workspace"
)

// secrets returns the variables that only the set-up of a repository gets: if it runs what is on the branch that people
// protect, which is not the base of every pull request.
func (w *Worker) secrets(r *run, repo string, c workspace.Clone) map[string]string {
	if w.cfg.Secrets == nil {
		return nil
	}
	secrets := w.cfg.Secrets(repo)
	own, _ := w.cfg.Policy.Allowed(repo)
	if trusted := cmp.Or(own.Base, c.DefaultBranch); len(secrets) > 0 && c.Base != trusted {
		r.notice("The set-up gets no secrets, because it runs what is on " + c.Base + " and not on " + trusted)
		return nil
	}
	return secrets
}

// leaked returns an error if a set-up has left a secret in a file, where every run would find it.
func leaked(ctx context.Context, secrets map[string]string, dirs ...string) error {
	search := newSearch(secrets)
	for _, dir := range dirs {
		file, name, err := search.in(ctx, dir)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed := agent.NewError(agent.ClassWorkspace, "search for secrets: "+err.Error())
			failed.User = "The set-up left files that cannot be searched for its secrets."
			return failed
		}
		if name != "" {
			failed := agent.NewError(agent.ClassWorkspace, "the set-up left a secret in a file")
			failed.User = fmt.Sprintf("The set-up left the secret %s in the file %s, where every run could read it. Remove it at the end of the set-up.",
				name, untrusted.Line(file, 200))
			return failed
		}
	}
	return nil
}

// search looks for secrets in files.
type search struct {
	forms   []secretForm
	longest int
	buffer  []byte
}

// secretForm is one of the texts in which a secret appears.
type secretForm struct {
	name string // of the secret
	text []byte
}

func newSearch(secrets map[string]string) *search {
	s := &search{}
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		for _, text := range agent.SecretForms(secrets[name]) {
			s.forms = append(s.forms, secretForm{name, []byte(text)})
			s.longest = max(s.longest, len(text))
		}
	}
	s.buffer = make([]byte, 1<<20+s.longest)
	return s
}

// in returns the first file below dir that has a secret, relative to dir, and the name of the secret; "" if there is none.
func (s *search) in(ctx context.Context, dir string) (file, name string, err error) {
	if len(s.forms) == 0 {
		return "", "", nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", "", err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := root.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if name = s.read(f); name != "" {
			file = path
			return fs.SkipAll
		}
		return nil
	})
	return file, name, err
}

// read returns the name of a secret that a file has, or "".
func (s *search) read(f io.Reader) string {
	for kept := 0; ; {
		n, err := io.ReadFull(f, s.buffer[kept:])
		read := s.buffer[:kept+n]
		for _, form := range s.forms {
			if bytes.Contains(read, form.text) {
				return form.name
			}
		}
		if err != nil { // the end of the file
			return ""
		}
		kept = copy(s.buffer, read[len(read)-s.longest:])
	}
}
