package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// layered makes the parts of an environment below a directory: a home, and a directory of the clone.
func layered(t *testing.T, b *bench, root, thread string) []Layer {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(b.dir, "vendor"), 0o700); err != nil {
		t.Fatal(err)
	}
	return []Layer{
		{Lower: filepath.Join(root, "home"), Changes: filepath.Join(root, thread, "home")},
		{
			Lower: filepath.Join(root, "vendor"), Changes: filepath.Join(root, thread, "vendor"),
			At: filepath.Join(b.dir, "vendor"),
		},
	}
}

// What a run changes in its layers is there for the next run of the same thread, and for no other.
func TestLayers(t *testing.T) {
	t.Parallel()
	root := house(t)
	seen := filepath.Join(root, "hidden", "of", "other")
	inSandbox(t, "", func(t *testing.T, b *bench) {
		put(t, root, map[string]string{"home/tool": "old", "home/gone": "x", "vendor/a:b,c\\d/lib": "lib"})
		show := "cat ~/tool; ls ~; cat vendor/*/*; cat " + seen + "/vendor/*/lib"
		for _, c := range []struct{ thread, line, want string }{
			{"a", show, "oldgone\ntool\nliblib"},
			{"a", "echo -n new > ~/tool; rm ~/gone; (cd vendor/a*; echo -n more > more); touch vendor/other", ""},
			{"a", show, "newtool\nlibmorelib"},
			{"b", show, "oldgone\ntool\nliblib"},
		} {
			s, err := b.Script(t.Context(), Script{
				ID: unique("layers"), Dir: b.dir, Line: c.line,
				Environment: Environment{Layers: layered(t, b, root, c.thread), SeenAs: seen},
			})
			if err != nil || s.Outcome != Done || s.Output != c.want {
				t.Fatalf("%s in %s: %v %s %q, want %q", c.line, c.thread, err, s.Outcome, s.Output, c.want)
			}
		}
		copied := filepath.Join(layered(t, b, root, "b")[0].Upper(), "tool")
		if _, err := os.Lstat(copied); err == nil && b.keepers.CheckOverlays(t.Context(), root) == nil {
			t.Error("the environment was copied although there are overlays")
		}
		if left, err := os.ReadDir(filepath.Join(b.dir, "vendor")); err != nil || len(left) > 0 {
			t.Errorf("the clone itself has %v %v", left, err)
		}
	}, func(c *Config) { c.Hidden = []string{filepath.Dir(filepath.Dir(seen))} })
}

// In production the worker is an ordinary user, whose process nobody can look into. Its runs have overlays as well.
func TestLayersOfAnOrdinaryUser(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, b *bench) {
		root := house(t)
		tool := filepath.Join(root, "lower", "tool")
		put(t, root, map[string]string{"lower/tool": "old"})
		out, err := asOrdinary(t, root, "AGENT_TEST_MODE=layered", "TMPDIR="+filepath.Join(root, "temp"))
		if want := "done old<nil>"; err != nil || out != want {
			t.Fatalf("%v %s, want %s", err, out, want)
		}
		if text, err := os.ReadFile(tool); string(text) != "old" {
			t.Errorf("the environment has %q %v", text, err)
		}
		if err := b.keepers.CheckOverlays(t.Context(), root); err != nil {
			return // the machine has none
		}
		if _, err := os.Lstat(filepath.Join(root, "changes", "work")); err != nil {
			t.Errorf("the environment was copied: %v", err)
		}
	})
}

// Runs side by side each see what was set up, and only their own changes.
func TestLayersSideBySide(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, b *bench) {
		root := house(t)
		for _, dir := range []string{"home", "vendor"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		var all sync.WaitGroup
		for i := range 5 {
			layers := layered(t, b, root, fmt.Sprint(i))
			all.Go(func() {
				s, err := b.Script(t.Context(), Script{
					ID: fmt.Sprint(unique("beside"), "-", i), Dir: b.dir, Environment: Environment{Layers: layers},
					Line: fmt.Sprintf("for n in {1..50}; do echo %d > ~/$n; done; ls vendor; cat ~/* | sort -u; touch vendor/%d", i, i),
				})
				if err != nil || strings.Fields(s.Output)[0] != fmt.Sprint(i) {
					t.Errorf("run %d: %v %s %q", i, err, s.Outcome, s.Output)
				}
			})
		}
		all.Wait()
		if left, err := os.ReadDir(filepath.Join(root, "home")); err != nil || len(left) > 0 {
			t.Errorf("the environment has %v %v", left, err)
		}
	})
}

// Without a sandbox each thread gets a copy, which has its changes.
func TestLayersWithoutSandbox(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	root := t.TempDir()
	put(t, root, map[string]string{"home/tool": "old", "vendor/lib": "lib"})
	for _, want := range []string{"oldlib", "newmore"} {
		s, err := b.Script(t.Context(), Script{
			ID: unique("none"), Dir: b.dir,
			Line:        "cat ~/tool vendor/lib; echo -n new >~/tool; echo -n more >vendor/lib",
			Environment: Environment{Layers: layered(t, b, root, "a")},
		})
		if err != nil || s.Outcome != Done || s.Output != want {
			t.Errorf("%v %s %q, want %q", err, s.Outcome, s.Output, want)
		}
	}
	for file, want := range map[string]string{"home/tool": "old", "vendor/lib": "lib"} {
		if text, err := os.ReadFile(filepath.Join(root, file)); string(text) != want {
			t.Errorf("the environment has %q %v", text, err)
		}
	}
}
