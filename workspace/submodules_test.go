package workspace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// beside adds another repository to the host of o, with one commit, and returns the commit.
func (o *origin) beside(repo string, files map[string]string) string {
	o.t.Helper()
	other := &origin{t: o.t, root: o.root, bare: filepath.Join(o.root, repo+".git"), work: o.t.TempDir()}
	testGit(o.t, o.root, "init", "--quiet", "--bare", "--initial-branch=main", other.bare)
	testGit(o.t, other.work, "init", "--quiet", "--initial-branch=main")
	testGit(o.t, other.work, "remote", "add", "origin", other.bare)
	return other.commit("main", files)
}

// modules commits submodules to a branch: a commit and an address for each directory.
func (o *origin) modules(branch string, links map[string][2]string) string {
	o.t.Helper()
	var b strings.Builder
	for _, at := range slices.Sorted(maps.Keys(links)) {
		fmt.Fprintf(&b, "[submodule \"%s\"]\n\tpath = %s\n\turl = %s\n", at, at, links[at][1])
		o.link(at, links[at][0])
		if err := os.MkdirAll(filepath.Join(o.work, at), 0o700); err != nil { // or git adds its removal
			o.t.Fatal(err)
		}
	}
	return o.commit(branch, map[string]string{".gitmodules": b.String()})
}

// anyone is a Want whose clone may have every repository, and the repositories that were asked for.
func anyone() (want Want, asked *[]string) {
	want, asked = api, new([]string)
	want.Submodule = func(_ context.Context, repo string) (string, error) {
		*asked = append(*asked, repo)
		return "", nil
	}
	return want, asked
}

func statusClean(t *testing.T, dir string) {
	t.Helper()
	if out := testGit(t, dir, "status", "--porcelain"); out != "" {
		t.Errorf("status: %s", out)
	}
}

// The files of submodules are in the clone, git sees nothing of them, and nothing of them is published or saved.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n", "dir/x.sh": "#!/bin/sh\n", ".gitignore": "*.o\n"})
	o.modules("main", map[string][2]string{"libs/one": {lib, "../lib.git"}, "two": {lib, "../../acme/lib"}})
	w := o.files()
	want, asked := anyone()
	c := checkout(t, w, want)
	files := workTree(t, c.Dir)
	if files["libs/one/lib.txt"] != "lib\n" || files["two/dir/x.sh"] == "" || len(c.Lacks) > 0 ||
		fmt.Sprint(c.Submodules, *asked) != "[libs/one two] [acme/lib acme/lib]" {
		t.Errorf("%v, %+v, asked for %v", files, c, *asked)
	}
	statusClean(t, c.Dir)
	write(t, filepath.Join(c.Dir, "two/lib.txt"), "by the agent\n")
	write(t, filepath.Join(c.Dir, "two/new.txt"), "by the agent\n")
	statusClean(t, c.Dir)
	if pushed, err := w.Publish(t.Context(), c, *publication()); err != nil || pushed.New {
		t.Errorf("published %+v, %v", pushed, err)
	}
	if b, err := w.Snapshot(t.Context(), c, 1<<20); err != nil || b.Work != "" || len(b.Missing) > 0 {
		t.Errorf("snapshot %+v, %v", b, err)
	}
	if saved, err := w.Save(t.Context(), want.Thread, t.TempDir()); err != nil || len(saved) > 0 {
		t.Errorf("saved %v, %v", saved, err)
	}
	// The next run gets what the commit names, also where the clone's files are used again.
	c = checkout(t, w, want)
	if files := workTree(t, c.Dir); files["two/lib.txt"] != "lib\n" || files["two/new.txt"] != "" {
		t.Errorf("next: %v", files)
	}
	statusClean(t, c.Dir)
	// What an agent has put there as a repository of its own is work.
	testGit(t, c.Dir, "init", "--quiet", "two/inner")
	if _, err := w.Save(t.Context(), want.Thread, t.TempDir()); !errors.Is(err, ErrUnsaved) {
		t.Errorf("save: %v", err)
	}
}

// A submodule's own submodules come from where its default branch says, are withdrawn like others, and what they lack
// is said for every run of the clone.
func TestNestedSubmodules(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	deep := o.beside("acme/deep", map[string]string{"deep.txt": "deep\n", ".gitattributes": gitAttributes, "a.bin": asPointer("a")})
	secret := o.beside("acme/secret", map[string]string{"secret.txt": "secret\n"})
	o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	lib := &origin{t: t, root: o.root, bare: filepath.Join(o.root, "acme/lib.git"), work: t.TempDir()}
	testGit(t, lib.work, "clone", "--quiet", lib.bare, ".")
	lib.modules("main", map[string][2]string{"in/deep": {deep, "../deep"}, "gone": {deep, "../gone"}})
	head := lib.modules("head", map[string][2]string{"in/deep": {deep, "../deep"}, "stolen": {secret, "../secret"}})
	o.modules("main", map[string][2]string{"lib": {head, "../lib"}})
	w := o.files()
	want, asked := anyone()
	c := checkout(t, w, want)
	files := workTree(t, c.Dir)
	if files["lib/in/deep/deep.txt"] != "deep\n" || fmt.Sprint(c.Submodules, *asked) != "[lib lib/in/deep] [acme/lib acme/gone acme/deep]" {
		t.Errorf("%v, %+v, asked for %v", files, c.Submodules, *asked)
	}
	lacks := func(c Clone) string {
		var all []string
		for _, l := range c.Lacks {
			all = append(all, fmt.Sprint(l.Names, l.Why))
		}
		return strings.Join(all, "; ")
	}
	statusClean(t, c.Dir)
	if got := lacks(c); got != "[lib/gone]errand has no access to their repositories; [lib/stolen]"+whyNoAddress+
		"; [lib/in/deep/a.bin]"+whyInner {
		t.Error(got)
	}
	want.Keep = true
	*asked = nil
	if got := lacks(checkout(t, w, want)); got != "[lib/gone lib/stolen]"+notThen+"; [lib/in/deep/a.bin]"+whyInner ||
		fmt.Sprint(*asked) != "[acme/lib acme/deep]" {
		t.Errorf("kept: %s, asked for %v", got, *asked)
	}
	not := ""
	want.Submodule = func(_ context.Context, repo string) (why string, err error) {
		if repo == not {
			why = "bob may not read them"
		}
		return why, nil
	}
	// Whose files are there is not what the protected branch says today, and does not depend on the agent's index.
	o.modules("main", map[string][2]string{"lib": {head, "../public"}})
	for _, not = range []string{"acme/deep", "acme/lib"} {
		write(t, filepath.Join(c.Dir, ".git/index"), "damaged")
		c = checkout(t, w, want)
		files = workTree(t, c.Dir)
		if c.Fresh || files["lib/in/deep/deep.txt"] != "" || (files["lib/lib.txt"] == "") != (not == "acme/lib") {
			t.Errorf("without %s: %+v: %v", not, c, files)
		}
	}
	if len(c.Lacks) > 0 { // they are within what is gone
		t.Errorf("withdrawn: %s", lacks(c))
	}
	// A clone that was not finished is not kept: nobody knows whose files are there.
	o.modules("main", map[string][2]string{"lib": {head, "../lib"}})
	want.Keep, not = false, ""
	c = checkout(t, w, want)
	note := w.mirror(want.Repo).clone(c.Dir).beside("submodules")
	write(t, note, "")
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want.Keep, not = true, "acme/deep"
	if c = checkout(t, w, want); !c.Fresh || workTree(t, c.Dir)["lib/in/deep/deep.txt"] != "" {
		t.Errorf("unfinished: %+v", c)
	}
}

// What is left out of a clone is said with the reason, and nothing is written outside of the submodules.
func TestSubmodulesLeftOut(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{
		"lib.txt": "lib\n", ".gitattributes": gitAttributes, "a.bin": asPointer("a"),
	})
	nested := &origin{t: t, root: o.root, bare: filepath.Join(o.root, "acme/lib.git"), work: t.TempDir()}
	testGit(t, nested.work, "clone", "--quiet", nested.bare, ".")
	deep := nested.modules("main", map[string][2]string{"deep": {lib, "../lib"}})
	o.beside("acme/secret", map[string]string{"secret.txt": "secret\n"})
	o.modules("main", map[string][2]string{
		"ok": {deep, "../lib"}, "gone": {lib, "../gone.git"}, "strange": {strings.Repeat("1", 40), "../lib"},
		"out": {lib, "../../../../etc"}, "absolute": {lib, "/etc"}, "file": {lib, "file://" + o.bare},
		"other": {lib, "https://other.example/acme/lib.git"}, "option": {lib, "../-lib"}, "ext": {lib, "ext::sh -c touch% x"},
		"secret": {lib, "../secret"},
	})
	w := o.files()
	want := api
	want.Submodule = func(_ context.Context, repo string) (string, error) {
		if repo == "acme/secret" {
			return "ann may not read them", nil
		}
		return "", nil
	}
	c := checkout(t, w, want)
	got := map[string]string{}
	for _, l := range c.Lacks {
		got[l.Why] = strings.Join(l.Names, " ")
	}
	if want := map[string]string{
		whyElsewhere:            "absolute ext file option other out",
		"ann may not read them": "secret",
		"errand has no access to their repositories": "gone",
		"their commits are on no branch and no tag":  "strange",
		whyInner: "ok/a.bin ok/deep/a.bin",
	}; !maps.Equal(got, want) {
		t.Errorf("lacks %q", got)
	}
	statusClean(t, c.Dir)
}

// A branch other than the protected one chooses the commit, but not the repository.
func TestSubmodulesOfTheProtectedBranch(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	secret := o.beside("acme/secret", map[string]string{"secret.txt": "secret\n"})
	o.modules("main", map[string][2]string{"lib": {lib, "../lib"}})
	o.modules("head", map[string][2]string{"lib": {secret, "../secret"}, "new": {secret, "../secret"}})
	want, asked := anyone()
	want.Ref = "head"
	c := checkout(t, o.files(), want)
	if len(c.Submodules) > 0 || len(c.Lacks) != 2 || slices.Contains(*asked, "acme/secret") {
		t.Errorf("%+v, asked for %v", c, *asked)
	}
}

// Of several submodules that .gitmodules has with one path, the last one counts, as for git.
func TestTwoSubmodulesWithOnePath(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.commit("main", map[string]string{".gitmodules": "" +
		"[submodule \"b\"]\n\tpath = lib\n\turl = ../b\n[submodule \"a\"]\n\turl = ../a\n\tpath = lib\n" +
		"[submodule \"c\"]\n\turl = ../c\n"})
	w := o.files()
	c := checkout(t, w, api)
	for range 20 { // a map has another order each time
		urls, err := w.mirror(api.Repo).addresses(t.Context(), c.Head)
		if err != nil || !maps.Equal(urls, map[string]string{"lib": "../a"}) {
			t.Fatal(urls, err)
		}
	}
}

// A kept clone loses the files of submodules that the next asker may not have; without an answer it stays as it is.
func TestSubmodulesAreWithdrawn(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	o.modules("main", map[string][2]string{"lib": {lib, "../lib"}})
	w := o.files()
	want, _ := anyone()
	c := checkout(t, w, want)
	write(t, filepath.Join(c.Dir, "new.txt"), "work\n")
	want.Keep = true
	if c = checkout(t, w, want); len(c.Submodules) != 1 || len(c.Lacks) > 0 {
		t.Errorf("kept: %+v", c)
	}
	if err := os.Remove(w.mirror(want.Repo).clone(c.Dir).beside("submodules")); err != nil { // as an earlier version
		t.Fatal(err)
	}
	outage := errors.New("no answer")
	want.Submodule = func(context.Context, string) (string, error) { return "", outage }
	if _, err := w.Checkout(t.Context(), want); !errors.Is(err, outage) {
		t.Errorf("outage: %v", err)
	}
	want.Submodule = func(context.Context, string) (string, error) { return "bob may not read them", nil }
	// Not even if git cannot tell what else the clone lacks.
	write(t, filepath.Join(c.Dir, ".gitattributes"), "x filter=lfs\n")
	testGit(t, c.Dir, "add", ".gitattributes")
	damaged := testGit(t, c.Dir, "rev-parse", ":.gitattributes")
	write(t, filepath.Join(c.Dir, ".git/objects", damaged[:2], damaged[2:]), "damaged")
	c = checkout(t, w, want)
	files := workTree(t, c.Dir)
	if c.Fresh || files["lib/lib.txt"] != "" || files["new.txt"] == "" || len(c.Lacks) != 1 ||
		c.Lacks[0].Why != "bob may not read them" {
		t.Errorf("%+v: %v", c, files)
	}
}

// What an agent has put in place of submodules stays, and prevents no further run.
func TestSubmodulesAreReplaced(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	o.modules("main", map[string][2]string{"a/lib": {lib, "../lib"}, "b/lib": {lib, "../lib"}})
	w := o.files()
	want, _ := anyone()
	c := checkout(t, w, want)
	write(t, filepath.Join(c.Dir, "a"), "by the agent\n")
	write(t, filepath.Join(c.Dir, "b"), "-> c")
	write(t, filepath.Join(c.Dir, "c/lib/work.txt"), "by the agent\n")
	want.Keep = true
	want.Submodule = func(context.Context, string) (string, error) { return "bob may not read them", nil }
	c = checkout(t, w, want)
	files := workTree(t, c.Dir)
	if c.Fresh || files["a"] == "" || files["c/lib/work.txt"] == "" || fmt.Sprint(c.Submodules) != "[b/lib]" {
		t.Errorf("%+v: %v", c, files)
	}
}

// Of ten thousand submodules, the first are fetched, and the others are counted.
func TestManySubmodules(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	var index, modules strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&index, "160000 %s\tm/%05d\n", lib, n)
		fmt.Fprintf(&modules, "[submodule \"%d\"]\n\tpath = m/%05d\n\turl = ../lib\n", n, n)
	}
	write(t, filepath.Join(o.work, "index"), index.String())
	testGit(t, o.work, "-c", "core.quotePath=false", "config", "alias.links", "!git update-index --index-info <index")
	testGit(t, o.work, "links")
	write(t, filepath.Join(o.work, "index"), "")
	write(t, filepath.Join(o.work, ".gitmodules"), modules.String())
	testGit(t, o.work, "add", ".gitmodules")
	testGit(t, o.work, "commit", "--quiet", "--message", "many")
	o.push("HEAD:refs/heads/main")
	want, asked := api, 0
	want.Submodule = func(context.Context, string) (string, error) { asked++; return "no", nil }
	c := checkout(t, o.files(), want)
	if asked != maxSubmodules || len(c.Lacks) != 2 || !strings.HasSuffix(c.Lacks[1].String(), "m/00059, 9940 more.") {
		t.Errorf("asked %d times: %.500v", asked, c.Lacks)
	}
}

// A submodule that does not arrive costs only the first clone some minutes, and leaves time for others.
func TestSlowSubmodule(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	m := w.mirror("acme/lib")
	held, err := lock(t.Context(), m.beside("lock")) // another worker fetches it
	if err != nil {
		t.Fatal(err)
	}
	defer unlock(held)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	synctest.Test(t, func(t *testing.T) {
		all, cancel := context.WithTimeout(t.Context(), submodulesLimit)
		defer cancel()
		for i, want := range []time.Duration{submoduleLimit, slowLimit, slowLimit} {
			began := time.Now()
			_, err := m.syncInTime(all, lib)
			if took := time.Since(began); fetchReason(err) != whyLate || took > 2*want || took < want || all.Err() != nil {
				t.Errorf("%d: after %v: %v", i, took, err)
			}
		}
		// Whoever comes last has no time left, but is not slow.
		other := w.mirror("acme/other")
		if _, err := other.syncInTime(all, lib); err == nil {
			t.Error("there was time")
		}
		if _, slow := w.slow.Load("acme/other"); slow {
			t.Error("it counts as slow")
		}
		// One that never arrives keeps no others from being fetched for later clones.
		hours, end := context.WithTimeout(t.Context(), slowFor+submoduleLimit)
		defer end()
		w.FetchSlow(hours)
		if _, slow := w.slow.Load(m.repo); slow || hours.Err() != nil {
			t.Error("it is fetched for ever")
		}
	})
}

// What was too slow for a clone is fetched for later ones; after an hour without success it is forgotten, and at once if
// none can be expected.
func TestSlowSubmoduleArrives(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	w := o.files()
	w.cfg.Credential = func(_ context.Context, repo string) (username, password string, _ error) {
		if repo == "acme/later" {
			return "", "", errors.New("no answer")
		}
		return "", "", nil
	}
	for _, repo := range []string{"acme/lib", "acme/later", "acme/gone"} {
		w.FetchLater(repo)
	}
	w.FetchSlow(t.Context())
	for repo, want := range map[string]bool{"acme/lib": false, "acme/later": true, "acme/gone": false} {
		if _, slow := w.slow.Load(repo); slow != want {
			t.Errorf("%s is tried again: %t", repo, slow)
		}
	}
	if err := os.RemoveAll(filepath.Join(o.root, "acme/lib.git")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.mirror("acme/lib").syncInTime(t.Context(), lib); err != nil {
		t.Error(err)
	}
	w.slow.Store("acme/later", time.Now().Add(-time.Second))
	w.FetchSlow(t.Context())
	if _, slow := w.slow.Load("acme/later"); slow {
		t.Error("it is tried for ever")
	}
}

// Submodules for which there is no room are left out, and a smaller one still has its place.
func TestLargeSubmodules(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	links := map[string][2]string{"z": {o.beside("acme/small", map[string]string{"x": "x\n"}), "../small"}}
	write(t, filepath.Join(o.work, "zeros"), strings.Repeat("\x00", 1<<24))
	blob := testGit(t, o.work, "hash-object", "-w", "zeros")
	write(t, filepath.Join(o.work, "zeros"), "")
	trees := map[string]string{
		"bytes": o.mktree(strings.Repeat("100644 blob "+blob+"\t%d\n", maxSubmoduleBytes>>24+1)),
	}
	tree := testGit(t, o.work, "rev-parse", "HEAD^{tree}")
	for _, name := range []string{"some", "files", "bomb"} { // each has 500 times the former
		tree = o.mktree(strings.Repeat("040000 tree "+tree+"\t%d\n", 500))
		trees[name] = tree
	}
	for name, tree := range trees {
		bare := filepath.Join(o.root, "acme", name+".git")
		testGit(t, o.root, "init", "--quiet", "--bare", "--initial-branch=main", bare)
		commit := testGit(t, o.work, "commit-tree", "-m", "x", tree)
		testGit(t, o.work, "push", "--quiet", bare, commit+":refs/heads/main")
		links[name] = [2]string{commit, "../" + name}
	}
	o.modules("main", links)
	want, _ := anyone()
	c := checkout(t, o.files(), want)
	if got := fmt.Sprint(c.Submodules, c.Lacks); got != "[some z] [These directories of submodules are empty, because errand "+
		"fetches at most 200000 files with 2048 MiB of them: bomb, bytes, files.]" {
		t.Error(got)
	}
}

// mktree writes a tree with these entries. Each %d in them becomes another number.
func (o *origin) mktree(entries string) string {
	o.t.Helper()
	for n := 0; strings.Contains(entries, "%d"); n++ {
		entries = strings.Replace(entries, "%d", fmt.Sprintf("%04d", n), 1)
	}
	write(o.t, filepath.Join(o.work, "entries"), entries)
	defer write(o.t, filepath.Join(o.work, "entries"), "")
	return testGit(o.t, o.work, "-c", "alias.entries=!git mktree <entries", "entries")
}

// Of a submodule that cannot be written completely nothing is there.
func TestPartOfASubmodule(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	lib := &origin{t: t, root: o.root, bare: filepath.Join(o.root, "acme/lib.git"), work: t.TempDir()}
	testGit(t, lib.work, "clone", "--quiet", lib.bare, ".")
	blob := testGit(t, lib.work, "rev-parse", "HEAD:lib.txt")
	testGit(t, lib.work, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+strings.Repeat("n", 300))
	testGit(t, lib.work, "commit", "--quiet", "--message", "a name that no directory can have")
	o.modules("main", map[string][2]string{"lib": {lib.push("HEAD:refs/heads/main"), "../lib"}})
	want, _ := anyone()
	c := checkout(t, o.files(), want)
	if files := workTree(t, c.Dir); len(c.Submodules) > 0 || len(c.Lacks) != 1 || files["lib/lib.txt"] != "" {
		t.Errorf("%+v: %v", c, files)
	}
	statusClean(t, c.Dir)
}

// A link that an agent's work has in place of a directory leads nowhere.
func TestSubmoduleBehindALink(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	lib := o.beside("acme/lib", map[string]string{"lib.txt": "lib\n"})
	o.modules("main", map[string][2]string{"libs/one": {lib, "../lib"}})
	w := o.files()
	c := checkout(t, w, api)
	outside := t.TempDir()
	if err := os.Mkdir(filepath.Join(outside, "one"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Dir, "libs"), "-> "+outside)
	b, err := w.Snapshot(t.Context(), c, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := anyone()
	restored, err := w.Restore(t.Context(), want, b)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(filepath.Join(restored.Dir, "libs")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is not restored: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(outside, "one")); len(left) > 0 {
		t.Errorf("written outside: %v", left)
	}
}

// Addresses in .gitmodules name repositories of the same forge, or none.
func TestSubmoduleAddresses(t *testing.T) {
	t.Parallel()
	w := &Workspace{cfg: Config{URL: func(repo string) string { return "https://git.corp:8443/scm/" + repo + ".git" }}}
	for address, repo := range map[string]string{
		"../lib.git": "acme/lib", "../lib/": "acme/lib", "../../other/lib": "other/lib", "./inner": "", "../lib#x": "",
		"https://git.corp:8443/scm/acme/lib.git": "acme/lib", "https://u:p@git.corp:8443/scm/acme/lib": "acme/lib",
		"https://git.corp/scm/acme/lib": "", "https://git.corp:8443/acme/lib": "", "git@git.corp:acme/lib.git": "acme/lib",
		"ssh://git@git.corp:22/scm/acme/lib.git": "acme/lib", "git@github.com:acme/lib.git": "", "git.corp:-x/lib": "",
		"../../..": "", "../../../../../etc/passwd": "", "/acme/lib": "", "acme/lib": "", "-lib": "", "": "", "../-lib": "",
		"file:///acme/lib": "", "ext::sh": "", "git://git.corp:8443/scm/acme/lib": "", "..\n/lib": "", "../lib/../../x/y": "x/y",
	} {
		if got := (mirror{w: w, repo: "acme/api"}).repoAt(address); got != repo && (address != "./inner" || got != "acme/api/inner") {
			t.Errorf("%q is %q, want %q", address, got, repo)
		}
	}
}
