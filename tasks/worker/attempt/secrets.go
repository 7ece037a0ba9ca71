package attempt

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// secrets returns the variables that the set-up of a repository gets in addition.
func (p *Processor) secrets(repo string) map[string]string {
	if p.Secrets == nil {
		return nil
	}
	return p.Secrets(repo)
}

// exposed returns the variables that a run and its checks get from the operator. Everybody who can push to the
// repository, and only they, decides what such a run executes: the clone starts from a branch, a tag or the head of a
// pull request that no source considers a stranger's, as the workspace has found it. A commit may be from anywhere,
// such as a fork that nobody has approved.
func (p *Processor) exposed(r *run, t tasks.Task, c workspace.Clone) (map[string]string, error) {
	var secrets map[string]string
	if p.Exposed != nil && t.Profile == agent.Write && p.Runner.Separated() {
		secrets = p.Exposed(t.Repo)
	}
	if len(secrets) == 0 && (t.Profile == agent.Untrusted || !c.From.IsCommit()) {
		return nil, nil // a later run keeps nothing of a stranger's clone
	}
	named, err := namedCommit(r.Ctx, p.Store.Memos, t, c)
	if err != nil || len(secrets) == 0 { // a later run in the clone may get secrets
		return nil, err
	}
	if len(c.With) > 0 { // the other repositories decide, too, what the run executes
		p.notice(r, "The run gets no secrets, because code of "+strings.Join(c.With, ", ")+" may be in its clone")
		return nil, nil
	}
	if c.Base != c.Protected {
		p.notice(r, "The run gets no secrets, because its base is not "+c.Protected)
		return nil, nil
	}
	if named {
		p.notice(r, "The run gets no secrets, because its head or that of an earlier run here is a commit")
		return nil, nil
	}
	return secrets, nil
}

// namedCommit reports whether the code of a commit that a person has named may be in the thread's clone of the task's
// repository, which may be kept when later tasks name a branch or nothing. What was published from it is on a branch,
// as if the person had pushed it.
func namedCommit(
	ctx context.Context, memos *store.Memos, t tasks.Task, c workspace.Clone,
) (named bool, err error) {
	name := "commit/" + t.Thread + "/" + strings.ToLower(t.Repo)
	err = memos.ChangeMemo(ctx, name, func(body json.RawMessage) (json.RawMessage, error) {
		if named = body != nil || c.From.IsCommit(); named {
			return json.RawMessage("true"), nil // also if it is there: from now on it is kept as long again
		}
		return nil, nil
	})
	return named, err
}

// leaked returns an error if a set-up has left a secret in a file, where every run would find it.
func leaked(ctx context.Context, secrets map[string]string, dirs ...string) error {
	for _, dir := range dirs {
		file, name, err := findSecret(ctx, dir, secrets)
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
			failed.User = fmt.Sprintf("The set-up left the secret %s in the file %s, where every run could read it. "+
				"Remove it at the end of the set-up.", name, untrusted.Line(file, 200))
			return failed
		}
	}
	return nil
}

// findSecret returns the first file below dir that has one of the secrets, relative to dir, and its name; "" if none
// has.
func findSecret(ctx context.Context, dir string, secrets map[string]string) (file, name string, err error) {
	var names []string // of the texts
	var texts [][]byte
	longest := 0
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		for _, text := range agent.SecretForms(secrets[name]) {
			names, texts, longest = append(names, name), append(texts, []byte(text)), max(longest, len(text))
		}
	}
	if len(texts) == 0 {
		return "", "", nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", "", err
	}
	defer root.Close()
	buffer := make([]byte, 1<<20+longest)
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
		i, err := findText(f, buffer, texts)
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if i < 0 {
			return nil
		}
		file, name = path, names[i]
		return fs.SkipAll
	})
	return file, name, err
}

// findText returns the index of a text that r has; -1 if it has none. The buffer is longer than every text.
func findText(r io.Reader, buffer []byte, texts [][]byte) (int, error) {
	longest := 0
	for _, text := range texts {
		longest = max(longest, len(text))
	}
	for kept := 0; ; {
		n, err := io.ReadFull(r, buffer[kept:])
		read := buffer[:kept+n]
		i := slices.IndexFunc(texts, func(text []byte) bool { return bytes.Contains(read, text) })
		if i >= 0 || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return i, nil
		}
		if err != nil {
			return -1, err
		}
		kept = copy(buffer, read[len(read)-longest:])
	}
}
