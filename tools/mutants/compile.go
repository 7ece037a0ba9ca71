package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What lies beside a test program: the number of the change in force, or the word recording; and the numbers of the changes
// whose code ran.
const (
	inForceFile = "in-force"
	recording   = "record"
	hitsFile    = "hits"
)

// switchSource is added to each changed package.
const switchSource = `package %s

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

var mutantDir, mutantInForce = func() (string, string) {
	program, err := os.Executable()
	if err != nil {
		return "", ""
	}
	text, _ := os.ReadFile(filepath.Join(filepath.Dir(program), %q))
	return filepath.Dir(program), string(text)
}()

var mutantHits sync.Map

func mutant(n int) bool {
	if mutantInForce != %q {
		return mutantInForce == fmt.Sprint(n)
	}
	if _, known := mutantHits.LoadOrStore(n, true); !known {
		f, err := os.OpenFile(filepath.Join(mutantDir, %q), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, n)
			f.Close()
		}
	}
	return false
}
`

// program is the file of the compiled tests of a package.
func (t *trial) program(pkg string) string {
	return filepath.Join(t.dir, strings.ReplaceAll(pkg, "/", "_")+".test")
}

// compileAll compiles the tests of a round with all changes to Go sources, and returns the changes that are left to try
// in each package. Changes that do not compile are dropped.
func (t *trial) compileAll(ctx context.Context, round int) (byPackage map[string][]*site, err error) {
	for {
		byPackage = map[string][]*site{}
		for _, s := range t.sites {
			if !t.fates[s].killed && round < len(s.subject.tests) {
				pkg := s.subject.tests[round]
				byPackage[pkg] = append(byPackage[pkg], s)
			}
		}
		broken, err := t.compile(ctx, slices.Sorted(maps.Keys(byPackage)))
		if err != nil {
			return nil, err
		}
		if len(broken) == 0 {
			return byPackage, nil
		}
		t.broken = append(t.broken, broken...)
		t.sites = slices.DeleteFunc(t.sites, func(s *site) bool { return slices.Contains(broken, s) })
	}
}

// compile compiles the tests of packages, and returns the changes that the compiler refuses.
func (t *trial) compile(ctx context.Context, packages []string) (broken []*site, err error) {
	overlay, err := t.overlay()
	if err != nil {
		return nil, err
	}
	for _, pkg := range packages {
		said, err := t.goTest(ctx, overlay, pkg, t.program(pkg))
		if err == nil {
			continue
		}
		broken = t.namedIn(said)
		if len(broken) == 0 {
			return nil, fmt.Errorf("compile the tests of %s: %w\n%s", pkg, err, said)
		}
		return broken, nil
	}
	return nil, nil
}

// namedIn lists the changes in the lines that the compiler names. They keep their places: a change adds no line.
func (t *trial) namedIn(said string) (named []*site) {
	for _, at := range regexp.MustCompile(`([^\s:]+\.go):(\d+):`).FindAllStringSubmatch(said, -1) {
		line, _ := strconv.Atoi(at[2])
		for _, s := range t.sites {
			if path.Base(s.file) == path.Base(at[1]) && s.line == line && !slices.Contains(named, s) {
				named = append(named, s)
			}
		}
	}
	return named
}

func (t *trial) goTest(ctx context.Context, overlay, pkg, program string) (said string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", program, "./"+pkg)
	cmd.Dir = t.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// overlay writes the changed Go sources and returns the name of the file that maps the originals to them.
func (t *trial) overlay() (string, error) {
	replace := map[string]string{}
	byFile := map[string][]*site{}
	for _, s := range t.sites {
		if !s.lua() {
			byFile[s.file] = append(byFile[s.file], s)
		}
	}
	for file, sites := range byFile {
		src, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			return "", err
		}
		if err := t.replace(replace, "src", file, apply(src, sites)); err != nil {
			return "", err
		}
		name := regexp.MustCompile(`(?m)^package (\w+)`).FindSubmatch(src)
		added := fmt.Sprintf(switchSource, name[1], inForceFile, recording, hitsFile)
		if err := t.replace(replace, "src", path.Join(path.Dir(file), "zz_mutant.go"), []byte(added)); err != nil {
			return "", err
		}
	}
	return t.writeOverlay("overlay.json", replace)
}

// compileLua compiles the tests with one changed script instead of the changes to Go sources.
func (t *trial) compileLua(ctx context.Context, pkg string, s *site) (program string, err error) {
	src, err := os.ReadFile(filepath.Join(t.root, s.file))
	if err != nil {
		return "", err
	}
	name := "lua" + strconv.Itoa(s.n)
	replace := map[string]string{}
	if err := t.replace(replace, name, s.file, apply(src, []*site{s})); err != nil {
		return "", err
	}
	overlay, err := t.writeOverlay(name+".json", replace)
	if err != nil {
		return "", err
	}
	program = filepath.Join(t.dir, name+".test")
	if said, err := t.goTest(ctx, overlay, pkg, program); err != nil {
		return "", fmt.Errorf("compile %s: %w\n%s", s, err, said)
	}
	return program, nil
}

// replace writes a changed source below a directory of the trial.
func (t *trial) replace(replace map[string]string, dir, file string, src []byte) error {
	name := filepath.Join(t.dir, dir, file)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	replace[filepath.Join(t.root, file)] = name
	return os.WriteFile(name, src, 0o600)
}

func (t *trial) writeOverlay(name string, replace map[string]string) (string, error) {
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name = filepath.Join(t.dir, name)
	return name, os.WriteFile(name, text, 0o600)
}
