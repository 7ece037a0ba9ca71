package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The tests run copies of their own program, as the tool does.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == holdCommand {
		os.Exit(hold(os.Args[2:]))
	}
	m.Run()
}

var toy = options{ //nolint:gochecknoglobals // what the tests share
	root: "testdata/toy", subjects: []subject{{"price", []string{"price"}}}, seed: 1, n: 9,
}

// A trial finds what the tests of a module notice and what they do not. It leaves neither a process nor a file behind.
func TestTrial(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	t.Setenv("LEFT", left)
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	o := toy
	o.out = &out
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"price.go:12: is left out: asked++\n    SURVIVED: 1 tests of price pass\n",
		`limit.lua:1: " == " becomes " ~= ": return ARGV[1] == 'a'` + "\n    killed: price: TestLimit\n",
		"price.go:17: is always so: cents > 7\n    SURVIVED: no test of price reaches it\n",
		"price.go:13: includes its bound: cents > 0\n    killed: price: TestCheap\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}

	pids, err := os.ReadFile(left)
	if err != nil {
		t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(pids)) {
		if pid, err := strconv.Atoi(field); err != nil || syscall.Kill(pid, 0) == nil {
			t.Errorf("process %s is left", field)
		}
	}
	if rest, err := os.ReadDir(os.TempDir()); err != nil || len(rest) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", rest, err)
	}
	if _, err := os.Stat("testdata/toy/price/zz_mutant.go"); err == nil {
		t.Error("a file was written into the checkout")
	}
}

// The same seed picks the same changes, another one others, and no two of them overlap.
func TestPick(t *testing.T) {
	t.Parallel()
	all, err := find("../..", subjects)
	if err != nil {
		t.Fatal(err)
	}
	list := func(seed uint64) (text string) {
		picked := pick(all, seed, 150)
		for i, s := range picked {
			text += s.String() + "\n"
			if i > 0 && picked[i-1].overlaps(s) {
				t.Errorf("%s overlaps %s", picked[i-1], s)
			}
		}
		if len(picked) != 150 {
			t.Errorf("%d were picked", len(picked))
		}
		return text
	}
	if one := list(1); one != list(1) || one == list(2) {
		t.Error("the pick does not follow its seed")
	}
	for i, sub := range subjects {
		if len(all[i]) == 0 {
			t.Errorf("nothing can be changed in %s", sub.dir)
		}
	}
}

// A trial that is interrupted ends the tests that run.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tests(ctx, ".", "/bin/sleep", "3600"); err == nil {
		t.Error("it went on")
	}
}
