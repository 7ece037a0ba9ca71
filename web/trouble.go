package web

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// unable is why a task that was submitted now would not be run, or would fail, and what to do about it; empty when neither.
func (s *sight) unable(now time.Time) (what, remedy string) {
	if what, remedy = tasks.Unable(s.workers); what != "" {
		return what, remedy
	}
	return ill(s.workers, s.credentials, now), ""
}

// trouble is the same in sentences.
func (s *sight) trouble(now time.Time) string {
	what, remedy := s.unable(now)
	if what == "" {
		return ""
	}
	return sentences(what, remedy)
}

// ill is why the model's credentials keep every worker that takes tasks from working now: each is refused, or held until a time. Empty when
// one of these workers has a credential that is neither. A worker that does not name its credential may have any.
func ill(seen []store.Worker, list []store.Credential, now time.Time) string {
	var bad []store.Credential
	for _, w := range seen {
		if !tasks.Able(w) {
			continue
		}
		i := slices.IndexFunc(list, func(c store.Credential) bool {
			return (w.Credential == "" || w.Credential == c.Name) && (c.Refused != "" || c.Until.After(now))
		})
		if i < 0 {
			return ""
		}
		bad = append(bad, list[i])
	}
	if len(bad) == 0 {
		return "" // see tasks.Unable
	}
	if i := slices.IndexFunc(bad, func(c store.Credential) bool { return c.Refused != "" }); i >= 0 {
		return "the model refuses the credential of the workers: " + bad[i].Refused
	}
	first := slices.MinFunc(bad, func(a, b store.Credential) int { return a.Until.Compare(b.Until) })
	return "no run starts before " + at(first.Until) + ": " + first.Why
}

// sentences are what is wrong and what to do about it, for people.
func sentences(what, remedy string) string {
	text := capital(what) + "."
	if remedy != "" {
		text += " " + capital(remedy) + "."
	}
	return text
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + strings.TrimSuffix(s[n:], ".")
}
