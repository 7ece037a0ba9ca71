package main

import "testing"

// The corpus has enough pull requests of both kinds, each of which changes its file.
func TestCorpus(t *testing.T) {
	t.Parallel()
	all, err := readCorpus(corpusText)
	if err != nil {
		t.Fatal(err)
	}
	bugs, names := 0, map[string]bool{}
	for _, p := range all {
		if p.bug != "" {
			bugs++
		}
		if p.path == "" || p.title == "" || p.old == "" || p.old == p.now || names[p.name] {
			t.Errorf("%+v", p)
		}
		names[p.name] = true
	}
	if clean := len(all) - bugs; bugs < 20 || clean < 10 {
		t.Errorf("%d with a bug and %d without", bugs, clean)
	}
	for _, wrong := range []string{
		"# a bug\npath: x\n x\n", "# a clean\nbug: x\n x\n", "# a bug\nbug: x\n x\n x\n", "# a clean\nx\n",
	} {
		if got, err := readCorpus(wrong); err == nil {
			t.Errorf("%q: %+v", wrong, got)
		}
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	bug, clean := pull{path: "a.go", bug: "x", line: 10}, pull{path: "a.go"}
	const summary = "Two.\n\n#### New, on lines of the diff\n\n- 🔴 **critical** [`a.go:12`](https://x): It is wrong.\n" +
		"- 🟠 **major** `a.go:9` (removed): Also.\n- 🟡 **minor** [`a.go:90`](https://x): Small.\n- 🟠 **major**: All of it.\n\n" +
		"1 finding was dropped after a second look, which came after the assessment above:\n\n- 🟠 **major** [`a.go:14`](https://x): No.\n\n  Dropped: So.\n"
	for _, c := range []struct {
		p             pull
		before, after score
	}{
		{bug, score{found: 1, wrong: 3}, score{found: 1, wrong: 2}},
		{clean, score{wrong: 4}, score{wrong: 3}},
		{pull{path: "b.go", bug: "x", line: 10}, score{missed: 1, wrong: 4}, score{missed: 1, wrong: 3}},
	} {
		var before, after score
		if c.p.add(&before, &after, summary); before != c.before || after != c.after {
			t.Errorf("%+v: %+v, %+v", c.p, before, after)
		}
	}
	removed := pull{path: "a.go", bug: "x", line: 10, removed: true}
	var before, after score
	if removed.add(&before, &after, summary); before != (score{found: 1, wrong: 3}) || after != (score{found: 1, wrong: 2}) {
		t.Errorf("%+v, %+v", before, after)
	}
	if s := (score{}); s.precision() != 100 || s.recall() != 100 {
		t.Errorf("of nothing: %v %v", s.precision(), s.recall())
	}
	if s := (score{found: 3, missed: 1, wrong: 3}); s.precision() != 50 || s.recall() != 75 {
		t.Errorf("%v %v", s.precision(), s.recall())
	}
}
