package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// asked makes an accepted event whose task has the token's name.
func asked(n int, p place) event {
	token := script.Token(n)
	return event{token: token, place: p, id: "id-" + token, thread: "thread", accepted: true}
}

// told makes a final message for tasks.
func told(p place, text string, tokens ...int) final {
	f := final{place: p, what: "m", text: text}
	for _, n := range tokens {
		f.covers = append(f.covers, "id-"+script.Token(n))
	}
	return f
}

func answer(tokens ...int) string {
	var list []string
	for _, n := range tokens {
		list = append(list, script.Token(n))
	}
	return "<@U0ANN>\n" + script.Answer(list)
}

func breaks(c check) bool { return len(c.broken) > 0 }

// forgetful is a Redis that has lost what was written in a window.
type forgetful struct {
	database
	window window
}

func (f forgetful) forgot() []window { return []window{f.window} }

// Only events that a lost master may have taken with it are forgiven, and none if a replica had to confirm them.
func TestForgive(t *testing.T) {
	t.Parallel()
	at := time.Now()
	lost, answered, later, refused := asked(1, inSlack), asked(2, inSlack), asked(3, inSlack), asked(4, inSlack)
	lost.acceptedAt, answered.acceptedAt, later.acceptedAt, refused.acceptedAt = at, at, at.Add(time.Minute), at
	refused.accepted = false
	s := newSaboteur(nil, &fleet{redis: forgetful{window: window{at.Add(-time.Second), at.Add(time.Second)}}})
	for replicas, want := range []int{1, 0} {
		s.f.replicas = replicas
		events := []event{lost, answered, later, refused}
		if n := s.forgive(events, []final{told(inSlack, "", 2)}); n != want || events[0].accepted == (want == 1) ||
			!events[1].accepted || !events[2].accepted {
			t.Errorf("%d replicas: %d forgiven: %+v", replicas, n, events)
		}
	}
}

// A push that errand found by looking is lost with that task: only if Redis was emptied, and after the push was
// accepted. Then its webhook has become no other task.
func TestForgiveWhatALookHadFound(t *testing.T) {
	t.Parallel()
	at := time.Now()
	pushed := asked(1, inGitHub)
	pushed.acceptedAt, pushed.pull, pushed.head = at, 35, "3d8ba44c0ffee"
	for name, c := range map[string]struct {
		gone string // a task that Redis had when it was emptied
		when time.Time
		want int
	}{
		"Redis was not emptied":                    {"", at, 0},
		"emptied while its own task waited":        {pushed.id, at.Add(time.Minute), 1},
		"emptied while the look's task waited":     {"1796010418000000-github-look-35-3d8ba44", at.Add(time.Minute), 1},
		"emptied before the webhook arrived":       {"1796010418000000-github-look-35-3d8ba44", at.Add(-time.Minute), 0},
		"emptied while another head's waited":      {"1796010418000000-github-look-35-0000000", at.Add(time.Minute), 0},
		"emptied while another pull request's was": {"1796010418000000-github-look-135-3d8ba44", at.Add(time.Minute), 0},
	} {
		s := newSaboteur(nil, &fleet{redis: forgetful{}})
		if c.gone != "" {
			s.gone[c.gone] = c.when
		}
		events := []event{pushed}
		n := s.forgive(events, nil)
		if lost, _ := checkCovered(events, nil); n != c.want || breaks(lost) != (c.want == 0) {
			t.Errorf("%s: %d forgiven, lost: %q", name, n, lost.broken)
		}
	}
}

func TestCoveredOnce(t *testing.T) {
	t.Parallel()
	unaccepted := asked(1, inSlack)
	unaccepted.accepted = false
	declined := asked(1, inGitHub)
	declined.id, declined.declined = "", "Ignored: a draft"
	repeated := asked(1, inGitHub)
	repeated.task, repeated.declined = true, overtaken
	late, newer := asked(1, inGitHub), asked(2, inGitHub)
	late.id, late.declined, newer.task = "", overtaken, true
	flushed := newer
	flushed.accepted, flushed.forgiven = false, true
	reviewed := asked(1, inGitHub)
	reviewed.declined = reviewedBefore
	known := asked(2, inGitHub)
	known.declined = reviewedBefore
	unknown := asked(1, inChat)
	unknown.id = ""
	for name, c := range map[string]struct {
		events        []event
		finals        []final
		lost, doubled bool
	}{
		"one each": {
			[]event{asked(1, inSlack), asked(2, inChat)},
			[]final{told(inSlack, "", 1), told(inChat, "", 2)},
			false,
			false,
		},
		"reviewed at an earlier delivery": {[]event{reviewed}, []final{told(inGitHub, "", 1)}, false, false},
		"said to be reviewed, and is not": {[]event{reviewed}, nil, true, false},
		"one for two": {
			[]event{asked(1, inSlack), asked(2, inSlack)}, []final{told(inSlack, "", 1, 2)}, false, false,
		},
		"none": {[]event{asked(1, inSlack)}, nil, true, false},
		"another's": {
			[]event{asked(1, inSlack), asked(2, inSlack)}, []final{told(inSlack, "", 2)}, true, false,
		},
		"of nobody's task": {
			[]event{asked(1, inSlack)}, []final{told(inSlack, "", 1), told(inSlack, "", 2)}, false, true,
		},
		"two": {
			[]event{asked(1, inSlack)}, []final{told(inSlack, "", 1), told(inSlack, "", 1)}, false, true,
		},
		"its own and its host's": {
			[]event{asked(1, inSlack), asked(2, inSlack)},
			[]final{told(inSlack, "", 1, 2), told(inSlack, "", 2)},
			false, true,
		},
		"not accepted, not done":          {[]event{unaccepted}, nil, false, false},
		"not accepted, done all the same": {[]event{unaccepted}, []final{told(inSlack, "", 1)}, false, false},
		"not accepted, done twice": {
			[]event{unaccepted}, []final{told(inSlack, "", 1), told(inSlack, "", 1)}, false, true,
		},
		"a task, and none when it is old": {[]event{repeated}, []final{told(inGitHub, "", 1)}, false, false},
		"overtaken by a newer head":       {[]event{late, newer}, []final{told(inGitHub, "", 2)}, false, false},
		"overtaken by a reviewed head":    {[]event{late, known}, []final{told(inGitHub, "", 2)}, false, false},
		"overtaken by what Redis lost":    {[]event{late, flushed}, nil, false, false},
		"overtaken by nothing":            {[]event{newer, late}, []final{told(inGitHub, "", 2)}, true, false},
		"accepted, and yet no task":       {[]event{declined}, nil, true, false},
		"accepted, but unknown":           {[]event{unknown}, []final{{covers: []string{""}}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost, doubled := checkCovered(c.events, c.finals)
			if breaks(lost) != c.lost || breaks(doubled) != c.doubled {
				t.Errorf("lost %q, doubled %q", lost.broken, doubled.broken)
			}
		})
	}
}

func TestHeardOrTold(t *testing.T) {
	t.Parallel()
	heard := func(tokens ...int) []life {
		l := life{role: script.CLI}
		for _, n := range tokens {
			l.taken = append(l.taken, taken{token: script.Token(n)})
		}
		return []life{l}
	}
	reviewed := told(inGitHub, "Reviewed, see the conversation", 1)
	reviewed.answer = true
	for name, c := range map[string]struct {
		event  event
		final  final
		lives  []life
		broken bool
	}{
		"answered":             {asked(1, inSlack), told(inSlack, answer(1), 1), heard(1), false},
		"answered with others": {asked(2, inSlack), told(inSlack, answer(1, 2), 1, 2), heard(1, 2), false},
		"said why not, to the end": {
			asked(1, inSlack), told(inSlack, "Stopped. Ask again to continue.", 1), nil, false,
		},
		"said why not, half way": {
			asked(1, inSlack), told(inSlack, "The agent was killed from outside. Working on "+script.Token(1), 1),
			heard(1), false,
		},
		"answered without it":       {asked(2, inSlack), told(inSlack, answer(1), 1, 2), heard(1, 2), true},
		"answered, but never heard": {asked(1, inSlack), told(inSlack, answer(1), 1), heard(2), true},
		"nothing said":              {asked(1, inChat), told(inChat, " \n", 1), heard(1), true},
		"reviewed":                  {asked(1, inGitHub), reviewed, heard(1), false},
		"not reviewed": {
			asked(1, inGitHub), told(inGitHub, "Not reviewed: Superseded by 1234567.", 1), nil, false,
		},
		"said to be reviewed, never heard": {asked(1, inGitHub), reviewed, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := checkTold([]event{c.event}, []final{c.final}, c.lives)
			if breaks(got) != c.broken || got.looked != 1 {
				t.Errorf("%d looked at, broken: %q", got.looked, got.broken)
			}
		})
	}
}

func TestMostAreAnswered(t *testing.T) {
	t.Parallel()
	unaccepted := asked(3, inSlack)
	unaccepted.accepted = false
	reviewed := told(inGitHub, "Reviewed, see the conversation", 1)
	reviewed.answer = true
	for name, c := range map[string]struct {
		events []event
		finals []final
		broken bool
	}{
		"all": {
			[]event{asked(1, inGitHub), asked(2, inChat)}, []final{reviewed, told(inChat, answer(2), 2)}, false,
		},
		"one for two": {
			[]event{asked(1, inSlack), asked(2, inSlack)}, []final{told(inSlack, answer(1, 2), 1, 2)}, false,
		},
		"half": {
			[]event{asked(1, inSlack), asked(2, inSlack)},
			[]final{told(inSlack, answer(1), 1), told(inSlack, "It failed.", 2)},
			true,
		},
		"not reviewed": {
			[]event{asked(1, inGitHub)}, []final{told(inGitHub, "Not reviewed: Superseded.", 1)}, true,
		},
		"broken off": {
			[]event{asked(1, inSlack)}, []final{{
				place: inSlack, covers: []string{"id-" + script.Token(1)}, text: answer(1), why: true,
			}}, true,
		},
		"nothing taken":      {[]event{unaccepted}, nil, true},
		"nothing asked":      {nil, nil, true},
		"what was not taken": {[]event{asked(1, inSlack), unaccepted}, []final{told(inSlack, answer(1), 1)}, false},
	} {
		if got := checkAnswered(c.events, c.finals); breaks(got) != c.broken {
			t.Errorf("%s: broken: %q", name, got.broken)
		}
	}
}

func TestOneReviewComment(t *testing.T) {
	t.Parallel()
	e := asked(1, inGitHub)
	e.pull = 7
	reviewed := told(inGitHub, "Reviewed", 1)
	reviewed.answer = true
	for name, c := range map[string]struct {
		final    final
		comments []string
		broken   bool
	}{
		"one":                {reviewed, []string{answer(1)}, false},
		"none wanted":        {told(inGitHub, "Not reviewed: superseded.", 1), nil, false},
		"two":                {reviewed, []string{answer(1), answer(1)}, true},
		"none":               {reviewed, nil, true},
		"one without answer": {reviewed, []string{"No review"}, true},
	} {
		got := checkComments([]event{e}, []final{c.final}, map[int][]string{7: c.comments})
		if breaks(got) != c.broken {
			t.Errorf("%s: %q", name, got.broken)
		}
	}
}

// at is a moment of a test.
func at(seconds float64) time.Time {
	return time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

// lived makes a CLI; no end is one that lives.
func lived(run string, worker int, from, to float64, tokens ...int) life {
	l := life{role: script.CLI, run: run, dir: "/dir/" + run, worker: worker, start: at(from)}
	if to > 0 {
		l.end = at(to)
	}
	for _, n := range tokens {
		l.taken = append(l.taken, taken{script.Token(n), at(from)})
	}
	return l
}

func left(run string, from, to float64) life {
	l := lived(run, 0, from, to)
	l.role, l.dir = script.Tool, ""
	return l
}

func TestOneCLIOfAThread(t *testing.T) {
	t.Parallel()
	threads := map[string]string{script.Token(1): "a", script.Token(2): "a", script.Token(3): "b"}
	inDir := func(l life, dir string) life { l.dir = dir; return l }
	for name, c := range map[string]struct {
		lives             []life
		overlaps, orphans bool
		excuses           int
	}{
		"one after the other": {
			[]life{lived("r1", 1, 0, 5, 1), lived("r2", 1, 5, 9, 2)}, false, false, 0,
		},
		"seen to end a little late": {
			[]life{lived("r1", 1, 0, 5.05, 1), lived("r2", 1, 5, 9, 2)}, false, false, 0,
		},
		"at once":                {[]life{lived("r1", 1, 0, 6, 1), lived("r2", 1, 5, 9, 2)}, true, false, 0},
		"the first never ended":  {[]life{lived("r1", 1, 0, 0, 1), lived("r2", 1, 5, 9, 2)}, true, false, 0},
		"a run's own second CLI": {[]life{lived("r1", 1, 0, 6, 1), lived("r1", 2, 5, 9, 1)}, true, false, 0},
		"other threads": {
			[]life{lived("r1", 1, 0, 6, 1), lived("r3", 1, 5, 9, 3)}, false, false, 0,
		},
		"one that has taken nothing up yet": {
			[]life{lived("r1", 1, 0, 6, 1), inDir(lived("r2", 1, 5, 9), "/dir/r1")}, true, false, 0,
		},
		"on the worker that was cut off": {
			[]life{lived("r1", 9, 0, 6, 1), lived("r2", 1, 5, 9, 2)}, false, false, 1,
		},
		"a tool that dies with its run": {[]life{
			lived("r1", 1, 0, 5, 1), left("r1", 1, 5), lived("r2", 1, 5, 9, 2),
		}, false, false, 0},
		"a tool that outlives its run": {[]life{
			lived("r1", 1, 0, 5, 1), left("r1", 1, 8), lived("r2", 1, 6, 9, 2),
		}, false, true, 0},
		"a tool of the run's own first CLI": {[]life{
			lived("r1", 1, 0, 5, 1), left("r1", 1, 0), lived("r1", 2, 6, 9, 1),
		}, false, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overlaps, orphans, excuses := checkOverlaps(c.lives, threads, func(l life, _ time.Time) bool {
				return l.worker == 9
			})
			if breaks(overlaps) != c.overlaps || breaks(orphans) != c.orphans || excuses != c.excuses {
				t.Errorf("overlaps %q, orphans %q, %d excuses", overlaps.broken, orphans.broken, excuses)
			}
		})
	}
}

func TestTakeoversAreMeasured(t *testing.T) {
	t.Parallel()
	lives := []life{
		lived("r1", 1, 0, 10, 1), lived("r2", 1, 1, 11, 2), lived("r3", 2, 1, 50, 3), // r2 is not done again
		lived("r4", 1, 2, 4), // had ended before
		lived("r1", 2, 28, 40, 1), lived("r3", 2, 60, 61, 3),
		lived("r5", 3, 100, 101), lived("r5", 2, 170, 171),
	}
	deaths := []death{{1, at(9.5)}, {3, at(100.5)}}
	all, quiet := takeovers(deaths, lives, []window{{at(110), at(120)}})
	if diff := cmp.Diff([]time.Duration{18500 * time.Millisecond, 69500 * time.Millisecond}, all); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]time.Duration{18500 * time.Millisecond}, quiet); diff != "" {
		t.Error(diff)
	}
}

func TestLateTakeovers(t *testing.T) {
	t.Parallel()
	lives := []life{
		lived("in time", 1, 2, 10), lived("late", 1, 2, 10), lived("ended", 1, 2, 9), lived("never again", 1, 2, 10),
		lived("after redis", 2, 2, 45), lived("late after redis", 2, 2, 45),
		lived("in time", 2, 30, 45), lived("late", 3, 41, 60), lived("after redis", 3, 75, 90),
		lived("late after redis", 3, 81, 90), lived("in time", 3, 200, 210), // it has lost two workers by then
	}
	deaths := []death{{1, at(9.5)}, {2, at(44)}}
	disturbances := func(worker int) []window {
		return map[int][]window{2: {{at(46), at(50)}, {at(20), at(30)}, {at(290), at(295)}}}[worker]
	}
	late := checkTakeovers(deaths, lives, disturbances)
	if late.looked != 4 || len(late.broken) != 2 || !strings.Contains(late.broken[0], "run late lived") ||
		!strings.Contains(late.broken[1], "run late after redis lived") {
		t.Errorf("%d looked at: %q", late.looked, late.broken)
	}
}

func TestOneBrokenCheckFailsTheRun(t *testing.T) {
	t.Parallel()
	r := report{broken: map[kind]int{killCLI: 1}, checks: []check{{name: "good"}, {name: "bad", looked: 2}}}
	if !r.ok() {
		t.Error("nothing is broken, and it fails")
	}
	r.checks[1].breaks("tok00001 is %s", "lost")
	var out strings.Builder
	r.write(&out)
	if r.ok() || !strings.Contains(out.String(), "FAIL     1 bad (of 2)\n         tok00001 is lost\n") {
		t.Errorf("it passes, or does not say why:\n%s", out.String())
	}
	if r = (report{}); r.ok() {
		t.Error("nothing was broken, and it passes")
	}
}

func TestLeaks(t *testing.T) {
	t.Parallel()
	before := usage{map[string]int{"worker-1: goroutines": 100}, map[string]int{"task": 100, "cap": 1}}
	for want, after := range map[string]usage{
		"": {
			map[string]int{"worker-1: goroutines": 110}, map[string]int{"task": 1100, "cap": 2},
		},
		"worker-1: goroutines: 900 more":       {map[string]int{"worker-1: goroutines": 1000}, map[string]int{}},
		"1000 keys absorbed are new":           {map[string]int{}, map[string]int{"absorbed": 1000}},
		"2000 keys task are new":               {map[string]int{}, map[string]int{"task": 2100}},
		"2000 keys asynq are new after 1000 t": {map[string]int{}, map[string]int{"asynq": 2000}},
	} {
		c := checkLeaks(before, after, 1000)
		if got := strings.Join(c.broken, ";"); (want == "") != (got == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPools(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	cli := func(worker int, tokens ...string) life {
		l := life{role: script.CLI, run: "r", worker: worker, start: begun.Add(time.Minute)}
		for _, token := range tokens {
			l.taken = append(l.taken, taken{token: token})
		}
		return l
	}
	pools, members := map[string]string{"a": "one", "b": "two", "c": "two"}, []membership{
		{1, begun, "one"}, {2, begun.Add(-time.Minute), "one"}, {2, begun, "two"}, {1, begun.Add(time.Hour), "two"},
	}
	for name, c := range map[string]struct {
		lives []life
		want  bool
	}{
		"each in its own": {[]life{cli(1, "a"), cli(2, "b", "c"), cli(99, "a")}, false},
		"in another":      {[]life{cli(1, "a"), cli(2, "b"), cli(1, "c")}, true},
		"none in one":     {[]life{cli(1, "a")}, true},
	} {
		if got := checkPools(c.lives, pools, members); breaks(got) != c.want || got.looked == 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestExits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(from, to int) window {
		return window{now.Add(time.Duration(from) * time.Second), now.Add(time.Duration(to) * time.Second)}
	}
	near, far := "worker-1", "worker-2"
	w := &world{sky: map[place]*weather{
		inGitHub: {last: []window{at(1000, 1060)}}, model: {last: []window{at(2000, 2060)}},
	}}
	s := newSaboteur(w, &fleet{workers: []*process{{name: near}, {name: far}}})
	s.outage, s.cut, s.emptied = []window{at(10, 20)}, []window{at(500, 530)}, []window{at(1500, 1501)}
	s.hurt = []injury{{7, at(3000, 3010)}}
	for name, c := range map[string]struct {
		worker string
		code   int
		life   window
		wrong  bool
	}{
		"well":                             {near, 0, at(100, 150), false},
		"killed":                           {near, -1, at(9, 12), true},
		"wrong command line":               {near, 2, at(9, 12), true},
		"could run no task":                {near, 4, at(9, 12), true},
		"no start without Redis":           {near, 1, at(15, 16), false},
		"no start with Redis":              {near, 1, at(100, 101), true},
		"an end long after Redis was away": {near, 1, at(15, 200), true},
		"no start of the one cut off":      {far, 1, at(510, 511), false},
		"no start of another than that":    {near, 1, at(510, 511), true},
		"no start after the cut":           {far, 1, at(531, 532), true},
		"no start while GitHub failed":     {near, 1, at(999, 1001), true},
		"failed without Redis":             {near, 3, at(5, 25), false},
		"failed for nothing":               {near, 3, at(100, 150), true},
		"failed long after Redis was away": {near, 3, at(5, 90), true},
		"failed when it was cut off":       {far, 3, at(499, 535), false},
		"failed when another one was":      {near, 3, at(499, 535), true},
		"failed when GitHub did":           {near, 3, at(990, 1030), false},
		"began after GitHub had failed":    {near, 3, at(1001, 1030), true},
		"failed when Redis was emptied":    {near, 3, at(1490, 1503), false},
		"failed when the model did":        {near, 3, at(1990, 2005), true},
		"failed after it was frozen":       {near, 3, at(2990, 3012), false},
	} {
		e := exit{c.worker, 7, c.code, c.life}
		if got := checkExits([]exit{e}, s.away, s.failures); breaks(got) != c.wrong || got.looked != 1 {
			t.Errorf("%s: %q", name, got.broken)
		}
	}
	e := exit{near, 8, 3, at(2990, 3012)}
	if got := checkExits([]exit{e}, s.away, s.failures); !breaks(got) {
		t.Error("another worker was frozen, and that excuses this one")
	}
}
