package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// trial holds changes against the tests.
type trial struct {
	root, dir string
	out       io.Writer
	sites     []*site

	broken []*site                // do not compile
	tests  map[string][]*testCase // by package
	failed []string               // tests that fail without a change
	fates  map[*site]fate
}

// fate is what became of a change: the test that noticed it, or why none did.
type fate struct {
	killed bool
	why    string
}

// testCase is one test of a package.
type testCase struct {
	name string
	took time.Duration
	hits map[int]bool // numbers of the changes whose code it runs
}

const (
	// places is how many test programs run side by side.
	places = 2

	// firstBatch is how long the quickest tests of a change take that are tried first. Most changes end there.
	firstBatch = 3 * time.Second

	// most is how long the tests of a change may take in one package, measured without a change. Slower ones are left out.
	most = 4 * time.Minute
)

// run tries the changes with the first package of tests of each, and what survives with the next ones.
func (t *trial) run(ctx context.Context) error {
	t.tests, t.fates = map[string][]*testCase{}, map[*site]fate{}
	for round := 0; ; round++ {
		byPackage, err := t.compileAll(ctx, round)
		if err != nil {
			return err
		}
		if len(byPackage) == 0 {
			return nil
		}
		for _, pkg := range slices.Sorted(maps.Keys(byPackage)) {
			if err := t.tryAll(ctx, pkg, byPackage[pkg]); err != nil {
				return err
			}
		}
	}
}

// tryAll holds changes against the tests of a package.
func (t *trial) tryAll(ctx context.Context, pkg string, sites []*site) error {
	if err := t.listen(ctx, pkg); err != nil {
		return err
	}
	return t.sideBySide(len(sites), func(p place, n int) error {
		s := sites[n]
		f, err := t.try(ctx, p, pkg, s)
		if err != nil {
			return err
		}
		p.Lock()
		defer p.Unlock()
		t.fates[s] = f
		fmt.Fprintf(t.out, "%3d %s\n    %s\n", s.n, s, f)
		return nil
	})
}

func (f fate) String() string {
	if f.killed {
		return "killed: " + f.why
	}
	return "SURVIVED: " + f.why
}

// place is a directory in which one test program runs at a time, with the lock of the trial's results.
type place struct {
	*sync.Mutex

	dir string
}

// sideBySide calls do for each number below n, in as many places as there are, until one fails.
func (t *trial) sideBySide(n int, do func(p place, n int) error) error {
	var (
		results sync.Mutex
		group   sync.WaitGroup
		errs    = make([]error, places)
		numbers = make(chan int, n)
	)
	for i := range n {
		numbers <- i
	}
	close(numbers)
	for i := range places {
		p := place{&results, filepath.Join(t.dir, "place"+strconv.Itoa(i))}
		group.Go(func() {
			for n := range numbers {
				if errs[i] = do(p, n); errs[i] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// put links a test program into a place, and says there which change is in force. Tests start processes without this
// environment, and so the program finds both by its own name.
func (p place) put(program, inForce string) (linked string, err error) {
	if err := os.RemoveAll(p.dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return "", err
	}
	linked = filepath.Join(p.dir, filepath.Base(program))
	if err := os.Link(program, linked); err != nil {
		return "", err
	}
	return linked, os.WriteFile(filepath.Join(p.dir, inForceFile), []byte(inForce), 0o600)
}

// listen runs each test of a package by itself and notes the changes that it reaches.
func (t *trial) listen(ctx context.Context, pkg string) error {
	list, err := tests(ctx, filepath.Join(t.root, pkg), t.program(pkg), "-test.list", ".")
	if err != nil {
		return fmt.Errorf("list the tests of %s: %w\n%s", pkg, err, list)
	}
	names := regexp.MustCompile(`(?m)^(Test|Fuzz|Example)\S*$`).FindAllString(list, -1)
	err = t.sideBySide(len(names), func(p place, n int) error {
		one, err := t.record(ctx, p, pkg, names[n])
		if err != nil {
			return err
		}
		p.Lock()
		defer p.Unlock()
		if one == nil {
			fmt.Fprintf(t.out, "    %s of %s fails without a change\n", names[n], pkg)
			t.failed = append(t.failed, pkg+": "+names[n])
			return nil
		}
		t.tests[pkg] = append(t.tests[pkg], one)
		return nil
	})
	slices.SortFunc(t.tests[pkg], func(a, b *testCase) int { return int(a.took - b.took) })
	fmt.Fprintf(t.out, "    %s: %d tests\n", pkg, len(t.tests[pkg]))
	return err
}

// record runs one test without a change. It returns nil if the test fails twice.
func (t *trial) record(ctx context.Context, p place, pkg, name string) (*testCase, error) {
	for range 2 {
		program, err := p.put(t.program(pkg), recording)
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		_, err = tests(ctx, filepath.Join(t.root, pkg), program, "-test.run", "^"+name+"$")
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue
		}
		one := &testCase{name: name, took: time.Since(begun), hits: map[int]bool{}}
		text, _ := os.ReadFile(filepath.Join(p.dir, hitsFile)) // none if it reaches no change
		for line := range bytes.Lines(text) {
			n, _ := strconv.Atoi(string(bytes.TrimSpace(line)))
			one.hits[n] = true
		}
		return one, nil
	}
	return nil, nil
}

// try holds one change against the tests of a package that reach it.
func (t *trial) try(ctx context.Context, p place, pkg string, s *site) (fate, error) {
	quick, slow, left := t.reaching(pkg, s)
	if len(quick.names) == 0 {
		return fate{why: "no test of " + pkg + " reaches it"}, nil
	}
	program := t.program(pkg)
	if s.lua() {
		var err error
		if program, err = t.compileLua(ctx, pkg, s); err != nil {
			return fate{}, err
		}
		defer func() { _ = os.Remove(program) }()
	}
	for _, b := range []batch{quick, slow} {
		why, err := t.fails(ctx, p, pkg, program, s, b)
		if err != nil {
			return fate{}, err
		}
		if why != "" {
			return fate{true, why}, nil
		}
	}
	why := fmt.Sprintf("%d tests of %s pass", len(quick.names)+len(slow.names), pkg)
	if left > 0 {
		why += fmt.Sprintf(", and %d slow ones were left out", left)
	}
	return fate{why: why}, nil
}

// batch are tests that run together.
type batch struct {
	names []string
	took  time.Duration
}

// reaching lists the tests that run the code of a change, the quickest in a batch of their own. A script may be run by any.
func (t *trial) reaching(pkg string, s *site) (quick, slow batch, left int) {
	for _, one := range t.tests[pkg] { // in the order of their time
		if !s.lua() && !one.hits[s.n] {
			continue
		}
		switch {
		case quick.took < firstBatch:
			quick.names, quick.took = append(quick.names, one.name), quick.took+one.took
		case quick.took+slow.took < most:
			slow.names, slow.took = append(slow.names, one.name), slow.took+one.took
		default:
			left++
		}
	}
	return quick, slow, left
}

// fails runs tests with a change in force, and returns which of them failed.
func (t *trial) fails(ctx context.Context, p place, pkg, program string, s *site, b batch) (string, error) {
	if len(b.names) == 0 {
		return "", nil
	}
	program, err := p.put(program, strconv.Itoa(s.n))
	if err != nil {
		return "", err
	}
	said, err := tests(ctx, filepath.Join(t.root, pkg), program, "-test.failfast", "-test.timeout", limit(b.took).String(),
		"-test.run", "^("+strings.Join(b.names, "|")+")$")
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil {
		return "", nil
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		return "", err
	}
	if failed := regexp.MustCompile(`--- FAIL: (\S+)`).FindStringSubmatch(said); failed != nil {
		return pkg + ": " + failed[1], nil
	}
	if strings.Contains(said, "panic: test timed out") {
		return pkg + ": a test hangs", nil
	}
	return pkg + ": the tests end without a result", nil
}

// report prints the changes that survived, and their number.
func (t *trial) report() {
	alive := 0
	for _, s := range t.sites {
		if f := t.fates[s]; !f.killed {
			alive++
			fmt.Fprintf(t.out, "survived: %s (%s)\n", s, f.why)
		}
	}
	for _, name := range t.failed {
		fmt.Fprintln(t.out, "left out, as it fails without a change:", name)
	}
	fmt.Fprintf(t.out, "%d changes, %d survived (%.1f %%); %d others do not compile\n",
		len(t.sites), alive, 100*float64(alive)/float64(max(1, len(t.sites))), len(t.broken))
}
