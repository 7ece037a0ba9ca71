package session

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/internal/transcript"
)

const sessionID = "11111111-2222-4333-8444-555555555555"

// saved makes the directories of a run in which the CLI has saved a session of these files, named relative to its
// project directory.
func saved(t *testing.T, files map[string]string) Dirs {
	t.Helper()
	d := dirsIn(agenttest.Memory(t))
	for name, text := range files {
		path := filepath.Join(d.Config, "projects", "-where-it-ran", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// packed returns the saved session.
func packed(t *testing.T, d Dirs, secrets *redact.Redactor) []byte {
	t.Helper()
	data, err := d.Save(sessionID, secrets)
	if err != nil {
		t.Error(err)
	}
	return data
}

// restore unpacks a session and restores it.
func restore(d Dirs, id string, data []byte, workDir string) error {
	a, err := transcript.Unpack(data)
	if err != nil {
		return err
	}
	return d.Restore(a, id, workDir)
}

// tree reads every regular file below dir.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		text, err := os.ReadFile(path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestSessionIsTakenAndPutElsewhere(t *testing.T) {
	t.Parallel()
	d := saved(t, map[string]string{
		sessionID + ".jsonl":                      "", // below
		sessionID + "/tool-results/b1.txt":        "all of it",
		sessionID + "/subagents/agent-1.jsonl":    "{}\n",
		"22222222-2222-4333-8444-555555555555/no": "another's",
	})
	own := filepath.Join(d.Config, "projects", "-where-it-ran", sessionID)
	line := `{"uuid":"the-prompt","saved":"` + own + `/tool-results/b1.txt"}` + "\n"
	if err := os.WriteFile(own+".jsonl", []byte(line+`{"uuid":"half"`), 0o600); err != nil {
		t.Fatal(err)
	}
	data := packed(t, d, nil)
	a, err := transcript.Unpack(data)
	if err != nil || !a.Holds("the-prompt") || a.Holds("all of it") || a.Holds("half") {
		t.Errorf("holds the prompt %t, a tool's result %t, half a line %t; %v", a.Holds("the-prompt"),
			a.Holds("all of it"), a.Holds("half"), err)
	}
	other := Dirs{Config: t.TempDir()}
	if err := restore(other, sessionID, data, "/else/where_1"); err != nil {
		t.Fatal(err)
	}
	project := filepath.Join(other.Config, "projects", "-else-where-1")
	want := map[string]string{
		sessionID + ".jsonl": `{"uuid":"the-prompt","saved":"` + project + "/" + sessionID +
			`/tool-results/b1.txt"}` + "\n",
		sessionID + "/tool-results/b1.txt":     "all of it",
		sessionID + "/subagents/agent-1.jsonl": "{}\n",
	}
	if diff := cmp.Diff(want, tree(t, project)); diff != "" {
		t.Error(diff)
	}
}

// A secret of the run is in no file of a saved session, and the lines of the conversation stay JSON.
func TestSessionWithoutSecrets(t *testing.T) {
	t.Parallel()
	d := saved(t, map[string]string{
		sessionID +
			".jsonl": `{"printed":"TOKEN=hunter\"22-22\nghp_012345678901234567890123456789012345"}` + "\n",
		sessionID + "/tool-results/b1.txt": "TOKEN=hunter\"22-22\n",
	})
	a, err := transcript.Unpack(packed(t, d, redact.Known("hunter\"22-22")))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"printed":"TOKEN=[redacted]\nghp_012345678901234567890123456789012345"}` + "\n", "TOKEN=[redacted]\n",
	}
	for i, f := range a.Files {
		if string(f.Content) != want[i] {
			t.Errorf("%s has %q, want %q", f.Name, f.Content, want[i])
		}
	}
}

// Sessions of earlier versions are only the file of JSON lines.
func TestSessionWithoutArchive(t *testing.T) {
	t.Parallel()
	data := []byte("{\"uuid\":\"the-prompt\"}\n")
	d := Dirs{Config: t.TempDir()}
	a, err := transcript.Unpack(data)
	if err != nil || !a.Holds("the-prompt") {
		t.Errorf("holds the prompt %t; %v", a.Holds("the-prompt"), err)
	}
	if err := restore(d, sessionID, data, "/w"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"projects/-w/" + sessionID + ".jsonl": string(data)},
		tree(t, d.Config)); diff != "" {
		t.Error(diff)
	}
}

// Tools can write where the CLI saves its session. Their links and pipes neither lead out of it nor delay the run.
func TestSessionTakesFilesOnly(t *testing.T) {
	t.Parallel()
	d := saved(t, map[string]string{sessionID + ".jsonl": "{}\n", sessionID + "/tool-results/good.txt": "good"})
	own := filepath.Join(d.Config, "projects", "-where-it-ran", sessionID)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"link.txt": outside, "dir": filepath.Dir(outside), "tool-results/link.txt": outside,
	} {
		if err := os.Symlink(target, filepath.Join(own, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(own, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := transcript.Unpack(packed(t, d, nil))
	if err != nil || len(a.Files) != 2 || a.Files[1].Name != "tool-results/good.txt" {
		t.Errorf("took %q, %v", a.Files, err)
	}
	elsewhere := d.Config + "-elsewhere"
	if err := errors.Join(os.Rename(d.Config, elsewhere), os.Symlink(elsewhere, d.Config)); err != nil {
		t.Fatal(err)
	}
	if got := packed(t, d, nil); got != nil {
		t.Errorf("took a session from outside of the run's directory: %q", got)
	}
	if err := errors.Join(os.Remove(d.Config), os.Rename(elsewhere, d.Config)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(own+".jsonl", own+".real"); err != nil {
		t.Fatal(err)
	}
	for _, plant := range []func() error{
		func() error { return os.Symlink(outside, own+".jsonl") },
		func() error { return unix.Mkfifo(own+".jsonl", 0o600) },
		func() error { return os.Mkdir(own+".jsonl", 0o700) },
		func() error { return os.WriteFile(own+".jsonl", []byte(`{"half`), 0o600) },
	} {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if got := packed(t, d, nil); got != nil {
			t.Errorf("took %q", got)
		}
		if err := os.Remove(own + ".jsonl"); err != nil {
			t.Fatal(err)
		}
	}
}

// A conversation is saved even if the results of its tools are too large.
func TestSessionTooLargeWithItsResults(t *testing.T) {
	t.Parallel()
	noise := make([]byte, transcript.MaxPacked+1)
	_, _ = rand.Read(noise)
	d := saved(t, map[string]string{sessionID + ".jsonl": "{}\n", sessionID + "/tool-results/noise": string(noise)})
	a, err := transcript.Unpack(packed(t, d, nil))
	if err != nil || len(a.Files) != 1 || string(a.Files[0].Content) != "{}\n" {
		t.Errorf("took %d files, %v", len(a.Files), err)
	}
}

// Tools can make any number of directories where a session is looked for. They cost the worker little.
func TestSessionAmongManyDirectories(t *testing.T) {
	t.Parallel()
	d := saved(t, map[string]string{sessionID + ".jsonl": "{}\n"})
	for i := range transcript.MaxFiles {
		if err := os.Mkdir(filepath.Join(d.Config, "projects", strconv.Itoa(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := d.Save(sessionID, nil); data != nil || !errors.Is(err, errTooMany) {
		t.Errorf("took %d bytes, %v", len(data), err)
	}
}

// However tools fill the directory of a session, few of its entries are looked at.
func TestSessionInAHostileTree(t *testing.T) {
	t.Parallel()
	wide, long := strings.Repeat("w", 200), strings.Repeat("d/", 3*maxDepth)
	for name, c := range map[string]struct {
		plant func(root *os.Root) error
		files int // that are saved
		seen  int // entries of the directories that are read
	}{
		"none": {func(*os.Root) error { return nil }, 0, 0},
		"deep": {func(root *os.Root) error {
			err := root.MkdirAll(long, 0o700)
			for i := range 3 * maxDepth {
				err = errors.Join(err, root.WriteFile(long[:2*i+2]+"file", nil, 0o600))
			}
			return err
		}, maxDepth, 2*maxDepth + 1},
		"long names": {func(root *os.Root) error {
			dir := wide + "/" + wide + "/" + wide
			return errors.Join(root.MkdirAll(dir, 0o700), root.WriteFile(dir+"/file", nil, 0o600),
				root.WriteFile(wide+"/file", nil, 0o600))
		}, 1, 4},
		"links": {func(root *os.Root) error {
			return errors.Join(root.MkdirAll(long, 0o700), root.Symlink(long, "0dir"),
				root.Symlink(long+"file", "0file"),
				root.WriteFile(long+"file", nil, 0o600))
		}, 0, maxDepth + 3},
		"pipes": {func(root *os.Root) error {
			var all error
			for i := range transcript.MaxFiles {
				all = errors.Join(all, unix.Mkfifo(filepath.Join(root.Name(), strconv.Itoa(i)), 0o600))
			}
			return all
		}, 0, transcript.MaxFiles},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := agenttest.Memory(t)
			root, err := os.OpenRoot(dir)
			if err == nil {
				err = c.plant(root)
				_ = root.Close()
			}
			parent, openErr := os.Open(filepath.Dir(dir))
			if err := errors.Join(err, openErr); err != nil {
				t.Fatal(err)
			}
			defer parent.Close()
			all := collector{room: transcript.MaxSize}
			all.collect(parent, filepath.Base(dir), "", 0)
			if len(all.files) != c.files || all.seen != c.seen || all.tried > transcript.MaxFiles {
				t.Errorf("took %d files of %d, saw %d, want %d and %d", len(all.files), all.tried, all.seen,
					c.files, c.seen)
			}
			if name == "pipes" && all.tried != transcript.MaxFiles-1 {
				t.Errorf("%d pipes count", all.tried)
			}
		})
	}
}

func TestHostileArchives(t *testing.T) {
	t.Parallel()
	archive := func(headers ...tar.Header) []byte {
		var b bytes.Buffer
		z := fastGzip(&b)
		w := tar.NewWriter(z)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	good := tar.Header{Name: transcript.Conversation, Size: 10}
	whole := archive(good, tar.Header{Name: "tool-results/x", Size: 10})
	if _, err := transcript.Unpack(whole); err != nil {
		t.Fatal(err)
	}
	broken := bytes.Clone(whole)
	broken[len(broken)-6] ^= 1 // in the checksum
	var bomb bytes.Buffer
	z := fastGzip(&bomb)
	if _, err := z.Write(make([]byte, 110<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"empty":           archive(),
		"cut":             whole[:len(whole)-9],
		"checksum":        broken,
		"bomb":            bomb.Bytes(),
		"no conversation": archive(tar.Header{Name: "tool-results/x"}),
		"two of them":     archive(good, good),
		"climbs":          archive(good, tar.Header{Name: "../x"}),
		"absolute":        archive(good, tar.Header{Name: "/etc/x"}),
		"link":            archive(good, tar.Header{Name: "x", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}),
		"hard link":       archive(good, tar.Header{Name: "x", Linkname: transcript.Conversation, Typeflag: tar.TypeLink}),
		"pipe":            archive(good, tar.Header{Name: "x", Typeflag: tar.TypeFifo}),
		"large":           archive(tar.Header{Name: transcript.Conversation, Size: transcript.MaxSize + 1}),
		"large together":  archive(good, tar.Header{Name: "x", Size: transcript.MaxSize}),
		"too many": archive(append([]tar.Header{good},
			slices.Repeat([]tar.Header{{Name: "x"}}, transcript.MaxFiles)...)...),
		"something behind": append(bytes.Clone(whole), bomb.Bytes()...),
	} {
		d := Dirs{Config: t.TempDir()}
		if restore(d, sessionID, data, "/w") == nil {
			t.Errorf("%s: taken for a session", name)
		}
		if left := tree(t, d.Config); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	if err := restore(Dirs{Config: t.TempDir()}, "../../../x", whole, "/w"); err == nil ||
		!strings.Contains(err.Error(), "escapes") {
		t.Errorf("an ID that climbs: %v", err)
	}
}

// fastGzip is for a hundred megabytes of nothing, which take seconds under the race detector otherwise.
func fastGzip(to io.Writer) *gzip.Writer {
	z, _ := gzip.NewWriterLevel(to, gzip.BestSpeed) // its only error is that of another level
	return z
}

// Sweep removes neither a directory that only looks like a run's, nor the target of a link.
func TestSweepKeepsToRunDirectories(t *testing.T) {
	t.Parallel()
	temp, other := agenttest.ShortTemp(t), t.TempDir()
	for _, name := range []string{filepath.Join(other, lockFile), filepath.Join(temp, "er-file")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stranger := filepath.Join(temp, "er-stranger")
	linked := filepath.Join(temp, "er-linked")
	pipe := filepath.Join(temp, "er-pipe")
	for _, dir := range []string{stranger, linked, pipe} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink(filepath.Join(other, lockFile), filepath.Join(linked, lockFile)),
		os.Symlink(other, filepath.Join(temp, "er-link")),
		syscall.Mkfifo(filepath.Join(pipe, lockFile), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	own, err := Make(temp)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Sweep(temp); n != 2 || err != nil { // the link and the pipe's
		t.Errorf("removed %d, %v", n, err)
	}
	for _, path := range []string{
		stranger, linked, own.Config, filepath.Join(other, lockFile), filepath.Join(temp, "er-file"),
	} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
	if err := own.Remove(); err != nil {
		t.Error(err)
	}
}
