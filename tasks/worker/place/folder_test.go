package place

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/instructions"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/workspace"
)

// The agent starts in the directory of the request, of the thread or of a setting. One that the clone does not have, or
// only behind a link, is refused if the request names it, and otherwise left out with a note.
func TestStartIn(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := filepath.Join(top, "clone")
	for _, name := range []string{"clone/a/b", "clone/c", "outside/d"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out": "../outside", "inside": "a", "a/up": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		asked, set, began string
		want, of          string // the directory, and whose wish counted
		says              string // a part of the refusal or the note
	}{
		{want: ""},
		{asked: "a/b/", want: "a/b", of: "the request"},
		{asked: "a", set: "c", began: "acme/api:a/b", want: "a", of: "the request"},
		{asked: ".", set: "c", want: "", of: "the request"},
		{set: "c", want: "c", of: "errand.yaml"},
		{set: "c", began: "acme/api:a/b", want: "a/b", of: "the thread"},
		{set: "c", began: "acme/api:.", want: "", of: "the thread"},
		{set: "c", began: "acme/api:c", want: "c", of: "errand.yaml"},
		{set: "c", began: "acme/web:a", want: "c", of: "errand.yaml"},
		{set: "c", began: "acme/api:gone", want: "c", of: "errand.yaml"},
		{began: "acme/api:a", want: "a", of: "the thread"},
		{asked: "none", says: "does not have it"},
		{asked: "file", says: "not a directory"},
		{asked: "file/x", says: "not a directory"},
		{asked: "out", says: "symbolic link"},
		{asked: "out/d", says: "symbolic link"},
		{asked: "inside/b", says: "symbolic link"},
		{asked: "a/up/c", says: "symbolic link"},
		{set: "none", says: "starts in the root"},
		{set: "out/d", says: "symbolic link"},
	} {
		p := Place{Dir: dir, Clone: workspace.Clone{Repo: "Acme/api", Dir: dir}}
		p.Settled.Put(rights.Setting{Name: "directory", Value: c.set, Of: "errand.yaml"})
		got, err := p.StartIn(tasks.Task{Repo: "Acme/api", Options: tasks.Options{Directory: c.asked}}, c.began)
		said := strings.Join(got.Notes, " ")
		if err != nil {
			said += err.Error()
			if input, _ := errors.AsType[*tasks.InputError](err); input == nil || input.Option != tasks.OptionDirectory {
				t.Errorf("%+v: %#v", c, err)
			}
		}
		if (err != nil) != (c.says != "" && c.asked != "") || (said == "") != (c.says == "") ||
			!strings.Contains(said, c.says) {
			t.Errorf("%+v: says %s", c, said)
		}
		if err != nil {
			continue
		}
		if got.Start() != filepath.Join(dir, c.want) || got.Settled.Setting("directory").Of != c.of ||
			strings.Contains(got.About, "You start in") != (c.want != "") {
			t.Errorf("%+v: starts in %s, %+v, %s", c, got.Start(), got.Settled, got.About)
		}
		again, err := p.StartIn(tasks.Task{Repo: "acme/API"}, got.Began())
		if err != nil || c.asked == "" && again.Start() != got.Start() {
			t.Errorf("%+v: goes on in %s: %v", c, again.Start(), err)
		}
	}
}

// In a trusted repository a request cannot leave behind the rules that hold where nobody asks for a directory. A
// conversation that began elsewhere goes on there.
func TestRequestsKeepTheRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		about, asked, usual, began string
		rules                      string // a file with rules
		untrusted, refused         bool
	}{
		{about: "the root's", asked: "docs", rules: ".claude/settings.json", refused: true},
		{about: "the root's local ones", asked: "docs", rules: ".claude/settings.local.json", refused: true},
		{about: "those of the set directory", asked: "docs", usual: "api", rules: "api/.claude/settings.json", refused: true},
		{about: "the same, by the root", asked: ".", usual: "api/", rules: "api/.claude/settings.json", refused: true},
		{about: "the set one is gone", asked: "docs", usual: "gone", rules: ".claude/settings.json", refused: true},
		{about: "a neighbour's thread", asked: "docs", began: "acme/web:docs", rules: ".claude/settings.json", refused: true},
		{about: "the set one", asked: "api", usual: "api/", rules: "api/.claude/settings.json"},
		{about: "the root", asked: "./", rules: ".claude/settings.json"},
		{about: "rules of another directory", asked: "docs", rules: "docs/.claude/settings.json"},
		{about: "the root's, which hold nowhere", asked: "docs", usual: "api", rules: ".claude/settings.json"},
		{about: "its own conversation", asked: "docs", began: "acme/api:docs", rules: ".claude/settings.json"},
		{about: "not asked", began: "acme/api:docs", rules: ".claude/settings.json"},
		{about: "rules are not in force", asked: "docs", rules: ".claude/settings.json", untrusted: true},
	} {
		dir := t.TempDir()
		for _, name := range []string{"api", "docs", filepath.Dir(c.rules)} {
			if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, c.rules), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := Place{Dir: dir, Clone: workspace.Clone{Repo: "acme/api", Dir: dir}, Trusted: !c.untrusted}
		p.Settled.Put(rights.Setting{Name: "directory", Value: c.usual, Of: "errand.yaml"})
		_, err := p.StartIn(tasks.Task{Repo: "acme/api", Options: tasks.Options{Directory: c.asked}}, c.began)
		var refused *tasks.InputError
		if errors.As(err, &refused) != c.refused || err != nil && !strings.Contains(err.Error(), " "+c.rules+" ") {
			t.Errorf("%s: %v", c.about, err)
		}
		if c.refused && refused.Option != tasks.OptionDirectory {
			t.Errorf("%s: refused for %q", c.about, refused.Option)
		}
	}
}

// A place without a clone is left alone, also one whose directory is gone.
func TestStartInNoClone(t *testing.T) {
	t.Parallel()
	p := Place{Dir: filepath.Join(t.TempDir(), "gone")}
	if got, err := p.StartIn(tasks.Task{Dir: p.Dir}, ""); err != nil || len(got.Notes) > 0 || got.Start() != p.Dir {
		t.Errorf("%+v: %v", got, err)
	}
}

// A conversation goes on in the root if it has lost its directory, also where its requests go on naming it, and in the
// directory again when that is back.
func TestStartWithoutTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	was, named := filepath.Join(dir, "was"), tasks.Task{Repo: "acme/api", Options: tasks.Options{Directory: "was/"}}
	if err := os.Mkdir(was, 0o700); err != nil {
		t.Fatal(err)
	}
	began := ""
	start := func(want, note string) {
		p := Place{Dir: dir, Clone: workspace.Clone{Repo: "acme/api", Dir: dir}}
		p, err := p.StartIn(named, began)
		if err != nil || p.Start() != want || strings.Join(p.Notes, " ") != note {
			t.Errorf("starts in %s, %q: %v", p.Start(), p.Notes, err)
		}
		began = p.Began()
	}
	start(was, "")
	if err := os.Remove(was); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		start(dir, `The agent cannot start in "was/" of acme/api: the clone does not have it. So it starts in the root. `+
			"The directory is that of the request.")
	}
	if err := os.Mkdir(was, 0o700); err != nil {
		t.Fatal(err)
	}
	start(was, "")
}

// No agent starts below a directory in which the workspace cannot look for files.
func TestMissingBelowUnlisted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	middle := filepath.Join(dir, "a/b")
	if err := os.MkdirAll(filepath.Join(middle, "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, shut := range []string{dir, middle} {
		if why := Missing(dir, "a/b/c"); why != "" {
			t.Fatal(why)
		}
		if err := os.Chmod(shut, 0o300); err != nil {
			t.Fatal(err)
		}
		if why := Missing(dir, "a/b/c"); !strings.HasSuffix(why, "cannot be read") {
			t.Errorf("below %s: %q", shut, why)
		}
		if err := os.Chmod(shut, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// Texts about a directory come at once where the agent starts in it or below it.
func TestInstructionsOnTheWay(t *testing.T) {
	t.Parallel()
	set := instructions.Set{Texts: []instructions.Text{
		{Name: "root"},
		{Name: "a", Paths: []string{"a/**"}},
		{Name: "ab", Paths: []string{"x/**", "a/b/**"}},
		{Name: "below", Paths: []string{"a/b/c/**"}},
		{Name: "beside", Paths: []string{"c/**"}},
		{Name: "go", Paths: []string{"**/*.go"}},
	}}
	p := Place{Folder: "a/b", Instructions: []agent.Instructions{{Set: set}}}
	at := func(p Place) (once []string) {
		for _, text := range p.Told()[0].Texts {
			if len(text.Paths) == 0 {
				once = append(once, text.Name)
			}
		}
		return once
	}
	if got := at(p); !slices.Equal(got, []string{"root", "a", "ab"}) {
		t.Errorf("at once: %q", got)
	}
	p.Folder = ""
	if got := at(p); !slices.Equal(got, []string{"root"}) {
		t.Errorf("at once in the root: %q", got)
	}
}
