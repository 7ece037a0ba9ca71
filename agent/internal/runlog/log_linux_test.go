package runlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"golang.org/x/sys/unix"
)

func newLog(t *testing.T, r *redact.Redactor) *Log {
	t.Helper()
	l, err := Open(t.TempDir(), "x", nil, r, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// content is what readers of a log see.
func content(t *testing.T, f *os.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A full disk costs what did not fit; what comes when there is room again is written.
func TestFullDiskDoesNotStopALog(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, name := range []string{".log", ".ndjson"} {
		l := newLog(t, nil)
		l.Flush()
		f := l.raw.f
		if name == ".log" {
			f = l.people.f
		}
		// The same open file, by its number: first a full disk, then one with room.
		fd := int(f.Fd())
		room, err := unix.Dup(fd)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Dup3(int(full.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		for range 3 * 64 << 10 / len("lost ") { // more than the buffer
			l.Raw([]byte("lost\n"))
			l.Note(time.Unix(0, 0), "lost")
		}
		l.Flush()
		if err := unix.Dup3(room, fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(room)
		l.Raw([]byte("kept\n"))
		l.Note(time.Unix(0, 0), "kept")
		if err := l.Close(); err == nil {
			t.Errorf("%s: the log does not say that something is missing", name)
		}
		if got := content(t, f); !strings.HasSuffix(got, "kept\n") || strings.Contains(got, "lost\nlost") {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestUnlinkedLogDoesNotStopALog(t *testing.T) {
	t.Parallel()
	l := newLog(t, nil)
	if err := os.RemoveAll(filepath.Dir(l.raw.f.Name())); err != nil {
		t.Fatal(err)
	}
	l.Raw([]byte("x\n"))
	l.Note(time.Now(), "x")
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Notes are collected, so that a talkative run does not make a system call for each; they are there soon, whoever wrote
// them.
func TestNotesAreThereSoon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l, err := Open(dir, "x", []string{"two\nlines"}, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		for _, note := range []string{"first", "second"} {
			l.Note(time.Now(), "%s", note)
			if strings.Contains(content(t, l.people.f), note) {
				t.Errorf("%q was not collected", note)
			}
			<-time.After(flushAfter)
			synctest.Wait()
			if !strings.Contains(content(t, l.people.f), note) {
				t.Errorf("%q is not there after %s", note, flushAfter)
			}
		}
		want := "# errand x\n# started 2000-01-01T00:00:00Z\n# two lines\n00:00:00.000 first\n00:00:00.250 second\n"
		if got := content(t, l.people.f); got != want {
			t.Errorf("the log is %q, want %q", got, want)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// The log for people is harmless in a terminal; the other has what came, secrets excepted.
func TestLogsAreHarmless(t *testing.T) {
	t.Parallel()
	l := newLog(t, redact.New("a-known-secret", "on two\nlines"))
	l.Note(time.Unix(0, 0), "secret %s", "on two\nlines")
	odd := "\x1b[31mred\x1b[0m \x1b]0;title\a\x1b(Bx\ttab\x00\xff\x7f a-known\x1b[1m-secret\r\n\u009b31m\u202e wörter\rback\x1b\n"
	l.Note(time.Unix(0, 0), "%s", odd)
	l.Raw([]byte(odd + "a-known"))
	l.Raw([]byte("-secret\na-kn"))
	raw, people := l.raw.f, l.people.f
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	want := "00:00:00.000 secret [redacted]\n00:00:00.000 red x\ttab\\x00\\xff\\x7f [redacted]\n             \\u009b31m\\u202e wörter\\x0dback\\x1b\n"
	if got := content(t, people); !strings.HasSuffix(got, want) {
		t.Errorf("the log for people is\n%q, want\n%q", got, want)
	}
	if got := content(t, raw); got != odd+"[redacted]\na-kn" {
		t.Errorf("the raw log is %q", got)
	}
}
