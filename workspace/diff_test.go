package workspace

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDiffIsWhatHeadChanged(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("topic", map[string]string{"äöü.txt": "new\n", ".gitattributes": "* -diff\n"})
	o.commit("main", map[string]string{"README.md": "not of this branch\n"})
	w := o.files()
	want := Want{Thread: "t", Repo: "acme/api", Ref: "topic", Keep: true}
	c := checkout(t, w, want)
	text, truncated, err := w.Diff(t.Context(), c, 1<<20)
	if err != nil || truncated {
		t.Fatal(truncated, err)
	}
	// The branch's own attributes do not hide its changes.
	if !strings.Contains(text, "+++ b/äöü.txt\n") || !strings.Contains(text, "\n+new\n") ||
		strings.Contains(text, "README") {
		t.Errorf("diff:\n%s", text)
	}

	cut, truncated, err := w.Diff(t.Context(), c, len(text)-1)
	if err != nil || !truncated || !strings.HasPrefix(text, cut) || !strings.HasSuffix(cut, "\n") {
		t.Errorf("one byte too long: truncated %v, error %v:\n%s", truncated, err, cut)
	}
	if whole, truncated, err := w.Diff(t.Context(), c, len(text)); whole != text || truncated || err != nil {
		t.Errorf("just fitting: truncated %v, error %v", truncated, err)
	}

	// A commit that only the clone has, with every setting to hide it.
	write(t, c.Dir+"/mine.txt", "by the agent\n")
	testGit(t, c.Dir, "add", "--all")
	testGit(t, c.Dir, "commit", "--quiet", "--message", "work")
	testGit(t, c.Dir, "replace", "HEAD", "HEAD~1")
	write(t, c.Dir+"/.git/info/attributes", "* -diff\n")
	c = checkout(t, w, want)
	// Git would wait indefinitely for a writer.
	write(t, c.Dir+"/.git/objects/info/alternates", "")
	if err := unix.Mkfifo(c.Dir+"/.git/objects/info/alternates", 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	text, _, err = w.Diff(ctx, c, 1<<20)
	if err != nil || !strings.Contains(text, "+by the agent\n") {
		t.Errorf("error %v, diff:\n%s", err, text)
	}
}

func TestDiffRefusesWhatIsNoClone(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	good := checkout(t, w, api)
	for _, change := range []func(*Clone){
		func(c *Clone) { c.Head = "--output=x" },
		func(c *Clone) { c.BaseSHA = "" },
		func(c *Clone) { c.Repo = "../../x" },
		func(c *Clone) { c.Head, c.Dir = strings.Repeat("ab", 20), t.TempDir() },
	} {
		c := good
		change(&c)
		if _, _, err := w.Diff(t.Context(), c, 100); err == nil || !strings.HasPrefix(err.Error(), "diff ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
