package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// corpus returns lines that look like code and notes about it, with quotes, tabs and non-ASCII characters as frequent
// as in real sessions.
func corpus(random *rand.Rand) []string {
	words := strings.Fields(`account address balance batch buffer cache charge client commit config context cursor customer delay
		delivery entry error event field file filter handler header index invoice item journal key ledger limit line list lock map
		message number offset order owner page parser payment payload pool price query queue rate reader record refund report
		request response result retry row schema server session shard source state status stream table task thread timeout token
		total transfer tree user value vendor window worker writer`)
	word := func() string { return words[random.IntN(len(words))] }
	shapes := []func() string{
		func() string {
			return fmt.Sprintf("\tif err := s.%s(ctx, %s.%s); err != nil {\n", word(), word(), word())
		},
		func() string {
			return fmt.Sprintf("\t\treturn fmt.Errorf(\"%s %s %%s: %%w\", %s.ID, err)\n", word(), word(), word())
		},
		func() string { return "\t}\n" },
		func() string { return "\n" },
		func() string {
			return fmt.Sprintf("func (s *%s) %s(%s []%s) map[string]%s {\n", word(), word(), word(), word(), word())
		},
		func() string {
			return fmt.Sprintf("\t%s := <-%s // the %s of a %s, in %s\n", word(), word(), word(), word(), word())
		},
		func() string {
			return fmt.Sprintf("The %s reads the %s before the %s is written, so the %s can be lost.\n", word(), word(),
				word(), word())
		},
		func() string {
			return fmt.Sprintf("- `%s/%s.go`: the %s – see §%d\n", word(), word(), word(), random.IntN(90))
		},
		func() string {
			return fmt.Sprintf("ok  \texample.com/%s/%s\t%d.%03ds\n", word(), word(), random.IntN(9), random.IntN(1000))
		},
		func() string { return fmt.Sprintf("✓ %s → %s (%d ms)\n", word(), word(), random.IntN(500)) },
	}
	lines := make([]string, 5000)
	for i := range lines {
		lines[i] = shapes[random.IntN(len(shapes))]()
	}
	return lines
}

// text returns about size bytes of the corpus.
func (w *writer) text(size int) string {
	var b strings.Builder
	b.Grow(size + 200)
	for b.Len() < size {
		b.WriteString(w.corpus[w.random.IntN(len(w.corpus))])
	}
	return b.String()
}

func (w *writer) file() string {
	return fmt.Sprintf("/srv/clone/internal/part%02d/file%03d.go", w.random.IntN(40), w.random.IntN(200))
}
