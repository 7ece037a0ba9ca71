package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// trap plants something that executes touch when git is used in the clone without precautions.
type trap func(t *testing.T, c Clone, touch string)

func traps() map[string]trap {
	config := func(format string) trap {
		return func(t *testing.T, c Clone, touch string) {
			write(t, c.Dir+"/.git/config", "[core]\n\tbare = false\n"+fmt.Sprintf(format, touch))
		}
	}
	// The environment cannot override this setting.
	const fetchTrap = "[core]\n\talternateRefsCommand = \"%s #\"\n"
	return map[string]trap{
		"fsmonitor":            config("[core]\n\tfsmonitor = \"%s; false\"\n"),
		"alternateRefsCommand": config(fetchTrap),
		"diff.external":        config("[diff]\n\texternal = \"%s #\"\n"),
		"gpg.program":          config("[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = %s\n"),
		"ext protocol": func(t *testing.T, c Clone, touch string) {
			config("[protocol \"ext\"]\n\tallow = always\n[url \"ext::%s\"]\n\tinsteadOf = "+c.Mirror+"\n")(t, c, touch)
		},
		"sshCommand": func(t *testing.T, c Clone, touch string) {
			config("[core]\n\tsshCommand = \"%s #\"\n[url \"ssh://x/\"]\n\tinsteadOf = "+c.Mirror+"\n")(t, c, touch)
		},
		"include.path": func(t *testing.T, c Clone, touch string) {
			config(fetchTrap)(t, c, touch)
			if err := os.Rename(c.Dir+"/.git/config", c.Dir+"/.git/evil"); err != nil {
				t.Fatal(err)
			}
			config("[include]\n\tpath = evil # %s\n")(t, c, touch)
		},
		"config.worktree": func(t *testing.T, c Clone, touch string) {
			config(fetchTrap)(t, c, touch)
			if err := os.Rename(c.Dir+"/.git/config", c.Dir+"/.git/config.worktree"); err != nil {
				t.Fatal(err)
			}
			write(t, c.Dir+"/.git/config",
				"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n")
		},
		"commondir": func(t *testing.T, c Clone, touch string) {
			write(t, c.Dir+"/evil", "")
			if err := os.CopyFS(c.Dir+"/evil", os.DirFS(c.Dir+"/.git")); err != nil {
				t.Fatal(err)
			}
			config(fetchTrap)(t, c, touch)
			if err := os.Rename(c.Dir+"/.git/config", c.Dir+"/evil/config"); err != nil {
				t.Fatal(err)
			}
			write(t, c.Dir+"/.git/commondir", "../evil\n")
		},
		"filter": func(t *testing.T, c Clone, touch string) {
			config("[filter \"x\"]\n\tclean = \"%s; cat\"\n\tsmudge = cat\n")(t, c, touch)
			write(t, c.Dir+"/.gitattributes", "* filter=x\n")
			write(t, c.Dir+"/.git/info/attributes", "* filter=x\n")
		},
		"textconv": func(t *testing.T, c Clone, touch string) {
			config("[diff \"x\"]\n\ttextconv = \"%s; cat\"\n")(t, c, touch)
			write(t, c.Dir+"/.git/info/attributes", "* diff=x\n")
		},
		"hooks": func(t *testing.T, c Clone, touch string) {
			for _, hook := range []string{"reference-transaction", "post-index-change", "post-checkout"} {
				write(t, c.Dir+"/.git/hooks/"+hook, "#!/bin/sh\n"+touch+"\n")
			}
		},
		"hooksPath": func(t *testing.T, c Clone, touch string) {
			config("[core]\n\thooksPath = evil # %s\n")(t, c, touch)
			for _, hook := range []string{"reference-transaction", "post-index-change", "post-checkout"} {
				write(t, c.Dir+"/evil/"+hook, "#!/bin/sh\n"+touch+"\n")
			}
		},
	}
}

// spring plants a trap and returns the file that it creates when sprung, by a program whose name ends in ".sh".
func spring(t *testing.T, plant trap, c Clone) (marker string) {
	t.Helper()
	marker = filepath.Join(t.TempDir(), "marker")
	write(t, marker+".sh", "#!/bin/sh\n: > "+marker+"\n")
	plant(t, c, marker+".sh")
	return marker
}

// Every row plants something that executes "touch <marker>" when git is used in the clone without precautions, which
// the test checks first: a trap that does not work would prove nothing.
func TestNothingInTheCloneExecutes(t *testing.T) {
	t.Parallel()
	for name, plant := range traps() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			o.commit("main", map[string]string{".mcp.json": "trusted\n"})
			testGit(t, o.work, "checkout", "--quiet", "--detach")
			o.push("HEAD:refs/pull/7/head")
			w := o.files()
			// All that the host does in a clone: fetch, update-ref, ls-files, update-index, rev-parse, and diff.
			want := Want{Thread: "t", Repo: "acme/api", Ref: "refs/pull/7/head", Keep: true, TrustedConfig: true}
			c := checkout(t, w, want)
			write(t, c.Dir+"/README.md", "two\n")
			testGit(t, c.Dir, "commit", "--quiet", "--all", "--message", "work")
			head := testGit(t, c.Dir, "rev-parse", "HEAD")
			o.commit("main", map[string]string{"README.md": "three\n"}) // something to fetch

			marker := spring(t, plant, c)
			touch := marker + ".sh"
			write(t, c.Dir+"/README.md", "four\n")
			for _, args := range []string{
				"status", "diff HEAD", "fetch " + c.Mirror + " refs/heads/main", "update-ref refs/x HEAD",
				"commit --allow-empty --message x",
			} {
				_, _ = tryGit(t, c.Dir, strings.Fields(args)...) // some traps make git fail
			}
			if !exists(marker) {
				t.Fatal("the trap does not work")
			}
			if err := os.Remove(marker); err != nil {
				t.Fatal(err)
			}

			write(t, c.Dir+"/.git/HEAD", head+"\n") // a commit made above may be in a repository that is not the clone
			c = checkout(t, w, want)
			if c.Fresh || c.Head != head {
				t.Errorf("the clone was not kept: %+v", c)
			}
			if _, _, err := w.Diff(t.Context(), c, 1<<20); err != nil {
				t.Error(err)
			}
			plant(t, c, touch)
			if _, _, err := w.Diff(t.Context(), c, 1<<20); err != nil {
				t.Error(err)
			}
			plant(t, c, touch)
			want.Keep = false
			checkout(t, w, want)
			if exists(marker) {
				t.Error("executed on the host")
			}
		})
	}
}

// Files that an agent can put where the host writes: every row would change a file outside the clone.
func TestNothingInTheCloneLeadsOutside(t *testing.T) {
	t.Parallel()
	plants := map[string]func(t *testing.T, dir, outside string){
		"config":       link(".git/config", "file"),
		"index":        link(".git/index", "file"),
		"packed-refs":  link(".git/packed-refs", "file"),
		"exclude":      link(".git/info/exclude", "file"),
		"info":         link(".git/info", "."),
		"refs":         link(".git/refs/remotes", "."),
		"reflog":       link(".git/logs/refs/remotes/origin/main", "file"),
		"alternates":   link(".git/objects/info/alternates", "file"),
		"agent file":   link(".mcp.json", "file"),
		"agent folder": link(".claude", "."),
		"parent":       link("sub", "."),
		"hard link":    hardLink(".git/config"),
		"hard reflog":  hardLink(".git/logs/refs/remotes/origin/main"), // git appends to it in place
	}
	o := newOrigin(t)
	o.commit("main", map[string]string{
		".mcp.json": "trusted\n", ".claude/settings.json": "{}\n", "sub/.mcp.json": "trusted\n",
	})
	w, places := o.files(), map[string]string{} // outside of the clones
	want := Want{Repo: "acme/api", Keep: true, TrustedConfig: true}
	for name, plant := range plants {
		want.Thread, places[name] = name, t.TempDir()
		write(t, places[name]+"/file", "precious\n")
		write(t, places[name]+"/.mcp.json", "precious\n")
		plant(t, checkout(t, w, want).Dir, places[name])
	}
	o.commit("main", map[string]string{"README.md": "two\n"})
	o.commit("new", nil)
	for name, outside := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, want := snapshot(t, outside), want
			want.Thread = name
			c := checkout(t, w, want)
			if diff := cmp.Diff(before, snapshot(t, outside)); diff != "" {
				t.Errorf("outside changed (-before +after):\n%s", diff)
			}
			if got := workTree(t, c.Dir)[".mcp.json"]; got != "trusted\n" {
				t.Errorf(".mcp.json is %q", got)
			}
			if got := testGit(t, c.Dir, "rev-parse", "origin/new"); got != testGit(t, o.work, "rev-parse", "new") {
				t.Errorf("origin/new is %s", got)
			}
		})
	}
}

// hardLink makes name in the clone a hard link to the file outside it.
func hardLink(name string) func(t *testing.T, dir, outside string) {
	return func(t *testing.T, dir, outside string) {
		name := filepath.Join(dir, name)
		write(t, name, "") // none: the link takes its place
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.Link(outside+"/file", name)); err != nil {
			t.Fatal(err)
		}
	}
}

// link replaces name in the clone with a link to target outside it.
func link(name, target string) func(t *testing.T, dir, outside string) {
	return func(t *testing.T, dir, outside string) {
		write(t, filepath.Join(dir, name), "-> "+filepath.Join(outside, target))
	}
}

// waysOut lead from a clone, with sub/secret.txt in its commit, to a secretRepository: its objects, or its file.
func waysOut() map[string]func(t *testing.T, dir, outside string) {
	return map[string]func(t *testing.T, dir, outside string){
		"objects": link(".git/objects", ".git/objects"),
		"pack":    link(".git/objects/pack", ".git/objects/pack"),
		"git":     link(".git", ".git"),
		"gitfile": func(t *testing.T, dir, outside string) {
			write(t, dir+"/.git", "gitdir: "+outside+"/.git\n")
		},
		"HEAD":                    link(".git/HEAD", ".git/HEAD"),
		"refs":                    link(".git/refs", ".git/refs"),
		"index":                   link(".git/index", ".git/index"),
		"work tree: file":         link("README.md", "secret.txt"),
		"work tree: tracked file": link("sub/secret.txt", "secret.txt"),
		"work tree: directory":    link("sub", "."),
		"work tree: untracked":    link("new", "."),
		"work tree: link inside": func(t *testing.T, dir, _ string) {
			write(t, dir+"/other/secret.txt", "other\n")
			write(t, dir+"/sub", "-> other")
		},
		"alternates": func(t *testing.T, dir, outside string) {
			write(t, dir+"/.git/HEAD", testGit(t, outside, "rev-parse", "HEAD")+"\n")
			write(t, dir+"/.git/objects/info/alternates", outside+"/.git/objects\n")
		},
	}
}

// secretRepository is a repository unrelated to any clone.
func secretRepository(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	testGit(t, dir, "init", "--quiet")
	write(t, dir+"/secret.txt", "secret\n")
	testGit(t, dir, "add", "--all")
	testGit(t, dir, "commit", "--quiet", "--message", "secret")
	return dir
}

// A clone with an unusable git directory should be set aside with its work, and replaced.
func TestUnusableCloneIsSetAside(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(t *testing.T, dir, evil string){
		"file":       func(t *testing.T, dir, evil string) { write(t, dir+"/.git", "gitdir: "+evil+"\n") },
		"link":       func(t *testing.T, dir, evil string) { write(t, dir+"/.git", "-> "+evil) },
		"gone":       func(t *testing.T, dir, _ string) { write(t, dir+"/.git", "") },
		"no HEAD":    func(t *testing.T, dir, _ string) { write(t, dir+"/.git/HEAD", "") },
		"no commit":  func(t *testing.T, dir, _ string) { write(t, dir+"/.git/HEAD", "ref: refs/heads/none\n") },
		"no objects": func(t *testing.T, dir, _ string) { write(t, dir+"/.git/HEAD", strings.Repeat("ab", 20)+"\n") },
		"no refs":    func(t *testing.T, dir, _ string) { write(t, dir+"/.git/packed-refs", "garbage\n") },
		// Would show another repository's commit.
		"not its own": func(t *testing.T, dir, evil string) {
			testGit(t, filepath.Dir(evil), "-c", "core.fsmonitor=false", "commit", "--quiet", "--allow-empty",
				"--message", "private")
			write(t, dir+"/.git/HEAD", testGit(t, evil, "rev-parse", "HEAD")+"\n")
			write(t, dir+"/.git/objects/info/alternates", evil+"/objects\n")
		},
		"pipe": func(t *testing.T, dir, _ string) {
			write(t, dir+"/.git/HEAD", "")
			if err := unix.Mkfifo(dir+"/.git/HEAD", 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"whole clone": func(t *testing.T, dir, evil string) {
			if err := os.Rename(dir, dir+"2"); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "-> "+filepath.Dir(evil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t)
			w := o.files()
			want := api
			want.Keep = true
			c := checkout(t, w, want)
			evil := t.TempDir()
			testGit(t, evil, "init", "--quiet")
			marker := evil + "/marker"
			write(t, evil+"/.git/config", "[core]\n\tfsmonitor = \": > "+marker+"; false\"\n\tbare = false\n")
			write(t, c.Dir+"/work.txt", "precious\n")
			plant(t, c.Dir, evil+"/.git")
			before := snapshot(t, evil)

			again := checkout(t, w, want)
			if !again.Fresh || again.Head == "" {
				t.Errorf("got %+v, want a fresh clone", again)
			}
			if diff := cmp.Diff(map[string]string{"README.md": "one\n"}, workTree(t, c.Dir)); diff != "" {
				t.Errorf("new clone (-want +got):\n%s", diff)
			}
			aside := filepath.Join(filepath.Dir(c.Dir), ".api~broken")
			if name != "whole clone" && workTree(t, aside)["work.txt"] != "precious\n" {
				t.Error("the work was not set aside")
			}
			if diff := cmp.Diff(before, snapshot(t, evil)); diff != "" {
				t.Errorf("the host worked in another repository (-before +after):\n%s", diff)
			}
		})
	}
}

// An error unrelated to the clone must not destroy it.
func TestUnreachableRemoteLeavesClone(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	c := checkout(t, w, api)
	write(t, c.Dir+"/work.txt", "precious\n")
	before := snapshot(t, c.Dir)
	if err := os.Rename(o.bare, o.bare+"2"); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{true, false} {
		want := api
		want.Keep = keep
		if _, err := w.Checkout(t.Context(), want); !errors.Is(err, ErrNotFound) {
			t.Errorf("keep %v: %v, want ErrNotFound", keep, err)
		}
	}
	if diff := cmp.Diff(before, snapshot(t, c.Dir)); diff != "" {
		t.Errorf("clone changed (-before +after):\n%s", diff)
	}
}
